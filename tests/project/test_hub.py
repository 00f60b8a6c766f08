"""book/hub.md and the container: what they say of chapters, files and the lock is so."""

import json
import re
import shutil
import subprocess

import pytest
import yaml

from gemmlab import kernels
from gemmlab.here.files import locked
from tests.support.paths import ROOT

TEXT = (ROOT / "book" / "hub.md").read_text("utf-8")
CONTAINER = ROOT / "container"
DOCKERFILE = (CONTAINER / "Dockerfile").read_text("utf-8")


def code(path):
    cells = json.loads(path.read_text("utf-8"))["cells"]
    return "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "code")


def chapters_of(row):
    """The numbers in the first cell of a row of the table, `02 to 06` written out."""
    cell = row.split("|")[1]
    spans = re.findall(r"(\d\d)(?: to (\d\d))?", cell)
    return {f"{n:02}" for first, last in spans for n in range(int(first), int(last or first) + 1)}


def test_the_table_of_colab_says_which_chapters_measure_and_which_replay():
    measuring, replaying, computing = map(
        chapters_of, re.findall(r"^\| \d\d.*$", TEXT, re.MULTILINE)
    )
    notebooks: dict[str, str] = {}
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        notebooks[path.name[:2]] = notebooks.get(path.name[:2], "") + code(path)
    on_gpu = re.compile('backend="(auto|gpu)"')
    assert measuring == {n for n, text in notebooks.items() if on_gpu.search(text)}
    replays = {n for n, text in notebooks.items() if re.search(r'"recorded"|records\.', text)}
    assert replaying == replays - measuring
    assert measuring | replaying | computing == set(notebooks)


def test_files_that_the_image_is_made_of_are_there():
    for line in re.findall(r"^COPY (?!\. )(.+) \S+$", DOCKERFILE, re.MULTILINE):
        assert all((ROOT / name).is_file() for name in line.split())
    assert (CONTAINER / "start.sh").read_text("utf-8").startswith("#!/bin/sh\n")
    ignored = (CONTAINER / "Dockerfile.dockerignore").read_text("utf-8").splitlines()
    assert not {"gemmlab", "lab", "notebooks", "container", "pyproject.toml"} & {*ignored}
    assert not (ROOT / "Dockerfile").exists(), "Binder would take it for environment.yml"


def test_the_values_of_the_chart_keep_the_home_of_the_image():
    [values] = re.findall(r"```yaml\n(.+?)```", TEXT, re.DOTALL)
    home = yaml.safe_load(values)["singleuser"]["storage"]["homeMountPath"]
    assert f"WORKDIR {home}\n" in DOCKERFILE
    assert f"useradd --create-home --uid 1000 {home.removeprefix('/home/')}" in DOCKERFILE


@pytest.mark.skipif(not shutil.which("flock"), reason="util-linux is not here")
def test_a_program_and_a_notebook_take_the_same_lock(tmp_path):
    asked = ["flock", "--nonblock", str(tmp_path), "true"]
    with locked(tmp_path):
        assert subprocess.run(asked).returncode == 1
    assert subprocess.run(asked).returncode == 0


def test_the_notebook_s_lines_run(tmp_path):
    [lines] = re.findall(r"```python\n(from pathlib.+?)```", TEXT, re.DOTALL)
    for old, new in (("/srv/gpu", str(tmp_path)), ("1024", "8"), ('"gpu"', '"simulator"')):
        assert old in lines
        lines = lines.replace(old, new)
    names = {}
    exec(lines, names)
    assert names["measured"].kernel == kernels.tiled.name

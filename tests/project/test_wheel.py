"""The installable package: what is in it, and that it opens the course where there is no clone."""

import os
import subprocess
import sys
import zipfile

import pytest

from tests.support.paths import ROOT

pytestmark = pytest.mark.measuring
KERNEL = """
import numpy as np
from numba import cuda

@cuda.jit
def double(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] *= 2

x = np.ones(100)
double[1, 128](x)
assert x.sum() == 200
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder with the package as an installation has it, and its files."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
    command += ["--no-build-isolation", "--wheel-dir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, cwd=folder)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as files:
        files.extractall(folder / "site")
        return folder / "site", files.namelist()


def run(installed, tmp_path, *command: str) -> subprocess.CompletedProcess:
    """Run Python with the installed package alone, and a home of its own."""
    env = os.environ | {"PYTHONPATH": str(installed[0]), "HOME": str(tmp_path)}
    return subprocess.run(
        [sys.executable, *command], cwd=tmp_path, env=env, capture_output=True, text=True
    )


def test_the_wheel_has_the_chapters_and_nothing_that_only_a_clone_needs(installed):
    names = installed[1]
    chapters = {f"gemmlab/lab/notebooks/{path.name}" for path in ROOT.glob("notebooks/*.ipynb")}
    assert chapters <= set(names)
    assert "gemmlab/lab/locale/zh_CN/LC_MESSAGES/gemmlab.po" in names
    tops = {name.split("/")[0] for name in names}
    assert tops == {"gemmlab", next(top for top in tops if top.endswith(".dist-info"))}
    assert not [name for name in names if "test" in name.rpartition("/")[2] or ".pyc" in name]


def test_the_installed_lab_lays_its_chapters_in_the_learners_home(installed, tmp_path):
    program = (
        "import gemmlab, gemmlab.lab.start as start\n"
        "from gemmlab.lab import working_copy\n"
        "print(gemmlab.__file__, start.INSTALLED)\n"
        "working_copy.update(start.CHAPTERS, start.WORK)"
    )
    done = run(installed, tmp_path, "-c", program)
    assert done.stdout.split() == [str(installed[0] / "gemmlab" / "__init__.py"), "True"]
    laid = sorted(path.name for path in (tmp_path / "gemmlab-course").glob("*.ipynb"))
    assert laid == sorted(path.name for path in ROOT.glob("notebooks/*.ipynb"))


def test_the_installed_lab_starts(installed, tmp_path):
    done = run(installed, tmp_path, "-m", "gemmlab", "lab", "--version")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()[0].isdigit()


def test_the_installed_package_simulates_a_program(installed, tmp_path):
    (tmp_path / "program.py").write_text(KERNEL, "utf-8")
    done = run(installed, tmp_path, "-m", "gemmlab", "simulate", "program.py")
    assert done.returncode == 0, done.stderr
    assert "double" in done.stderr

"""README.md: its table is what the records say, its code runs, its links lead somewhere."""

import re
import runpy

import pytest
from PIL import Image

from benchmarks import readme
from benchmarks.forecast import ladder
from benchmarks.forecast.written import first_and_since
from gemmlab import cli, kernels, plots
from gemmlab.here.compilers import MLIR, NUMBA, chosen
from gemmlab.kernels.hashing import source_hash
from tests.support.paths import ROOT

README = (ROOT / "README.md").read_text("utf-8")


def test_the_ladder_is_up_to_date():
    assert readme.up_to_date(README) == README, "run: python -m benchmarks.readme"
    assert all(f"[{k.name}](gemmlab/kernels/simt/{k.name}.py)" in README for k in kernels.LADDER)


def test_the_picture_is_up_to_date_and_sharp():
    words = plots.alt(readme.picture())
    with Image.open(readme.PICTURE) as picture:
        assert picture.text["Description"] == words, "run: python -m benchmarks.readme"
        assert picture.width > 1600
    assert f"![{words}](book/images/ladder.png)" in README


def test_the_error_of_all_predictions_and_its_picture_are_those_of_their_page():
    page = (ROOT / "book" / "predictions.md").read_text("utf-8")
    bold, words = re.search(r"(\*\*[^*]+\*\*).*?!\[(.+?)\]", page, re.S).groups()
    assert bold in " ".join(README.split())
    with Image.open(ROOT / "book" / "images" / "predictions.png") as picture:
        assert picture.text["Description"] == words, "run: python -m benchmarks.forecast.pages"


def test_predictions_are_of_the_kernels_that_are_here():
    rows = [row for made in first_and_since(readme.DEVICE, readme.PREDICTED) for row in made.rows]
    found = {(r["kernel"], r["problem"], r["tiling"]): r["source_sha256"] for r in rows}
    cases = ladder.SETS["readme"](readme.DEVICE)
    assert found == {c.key: source_hash(kernels.get(c.kernel)) for c in cases}


def test_a_prediction_is_what_is_predicted_here():
    (case,) = (c for c in ladder.SETS["readme"](readme.DEVICE) if c.kernel == "naive")
    seconds = readme.predictions()[case.key]
    assert ladder.row(case, readme.DEVICE)["seconds"] == pytest.approx(seconds, rel=0.01)


SIMULATED, TEN_LINES = re.findall(r"```python\n(.*?)```", README, re.S)


def test_a_kernel_is_simulated(tmp_path, capsys):
    path = tmp_path / "program.py"
    path.write_text(SIMULATED, "utf-8")
    scope = runpy.run_path(str(path))
    (hazard,) = scope["report"].hazards
    assert (hazard.kind, hazard.index) == ("out-of-bounds", (64,))
    assert hazard.code.startswith("y[i] = x[i + 1]")
    assert capsys.readouterr().out.endswith(f" {hazard.line}\n")
    assert cli.main(["simulate", str(path)]) == cli.NOTHING_LAUNCHED  # it simulates by itself
    assert "program.py on a simulated GPU: 0 launches" in capsys.readouterr().err


@pytest.mark.ptxas
def test_a_kernel_of_ones_own_is_predicted(tmp_path, capsys):
    (lines,) = (code for code in re.findall(r"```py\n(.*?)```", README, re.S) if "predict_" in code)
    path = tmp_path / "program.py"  # a kernel's source is read from its file
    path.write_text(f"{SIMULATED}\n{lines}", "utf-8")
    runpy.run_path(str(path))
    said = capsys.readouterr().out.splitlines()[-1]
    named = lines.splitlines()[-1].removeprefix("# ")
    # Python's version may change an instruction of what Numba compiles, and with it a few percent.
    # numba-cuda-mlir multiplies by strides, a fourth more of so short a kernel: book/compilers.md.
    longer = {NUMBA: 1, MLIR: 1.25}[chosen()]
    assert float(said.split()[0]) == pytest.approx(longer * float(named.split()[0]), rel=0.1)
    assert said.split(";")[0].split()[1:] == named.split(";")[0].split()[1:]


@pytest.mark.ptxas
@pytest.mark.measuring
def test_a_program_is_predicted_as_it_says(tmp_path, monkeypatch, capsys):
    """Its lines, their order and what limits are as they stand here, and times within 10%."""
    (code,) = (c for c in re.findall(r"```py\n(.*?)```", README, re.S) if "def transpose" in c)
    (shown,) = re.findall(r"```\n\$ (gemmlab predict .*?)```", README, re.S)
    command, _, expected = shown.partition("\n")
    (tmp_path / "transpose.py").write_text(code, "utf-8")
    monkeypatch.chdir(tmp_path)
    assert cli.main(command.split()[1:]) == 0
    lines, wanted = capsys.readouterr().out.splitlines(), expected.splitlines()
    assert lines[0] == wanted[0]
    for got, line in zip(lines[1:3], wanted[1:3], strict=True):
        device, microseconds, *rest = line.split()
        assert float(got.split()[1]) == pytest.approx(float(microseconds), rel=0.1)
        assert [got.split()[0], *got.split()[2:]] == [device, *rest]
    sources = [[x.split("%  ")[-1] for x in told if "%  " in x] for told in (lines, wanted)]
    assert sources[0][0] == sources[1][0]
    assert sources[0] == sources[1] or chosen() == MLIR  # its waits are others


def test_the_ten_lines_run():
    scope = {}
    exec(TEN_LINES, scope)
    assert scope["m"].passed
    assert dict(scope["m"].counters) == {k: v for k, v in scope["p"].counters.items() if v}


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\]\(([^)#]+)\)", README))))
def test_links_lead_somewhere(target):
    assert target.startswith("https://") or (ROOT / target).exists()


def test_every_chapter_is_in_the_map():
    for path in (ROOT / "notebooks").glob("*.ipynb"):
        assert f"notebooks/{path.name}" in README

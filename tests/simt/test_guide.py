"""The user's guide, `book/simulator.md`: its tables are up to date, and its code runs."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from benchmarks.fingerprint import fingerprint
from benchmarks.page_tables import filled
from benchmarks.simulator import numba_simulator, speed
from benchmarks.simulator.work import WORKS
from tests.support.paths import ROOT

PAGE = ROOT / "book" / "simulator.md"
TEXT = PAGE.read_text("utf-8")
CELLS = re.findall(r"```\{code-cell\} ipython3\n(.*?)```", TEXT, re.S)


@pytest.mark.measuring
def test_its_tables_are_up_to_date():
    pytest.importorskip("numba.cuda.simulator")
    from benchmarks.simulator import guide

    assert filled(TEXT, guide.TABLES) == TEXT, "run: python -m benchmarks.simulator.guide"


def test_what_numbas_simulator_said_is_of_these_sources():
    """Every kernel is recorded, as it is now."""
    files, known = numba_simulator.files(), numba_simulator.recorded()
    hashes = {path: fingerprint(path.read_text("utf-8")) for path in files.values()}
    stale = [
        name
        for name, path in files.items()
        if name not in known or known[name].measured["source_sha256"] != hashes[path]
    ]
    assert not stale, "run: python -m benchmarks.simulator.numba_simulator"
    assert set(known) == set(files)


@pytest.mark.skipif(
    sys.version_info >= (3, 12),
    reason="ast.unparse quotes f-strings otherwise than Python 3.11, by which the works are hashed",
)
def test_times_are_of_these_works():
    """Every work is recorded, as it is now, with the computer, versions and the date."""
    known, now = speed.recorded(), speed.code_sha256()
    assert list(known) == list(WORKS)
    stale = [name for name, result in known.items() if result.measured["code_sha256"] != now]
    assert not stale, "run: python -m benchmarks.simulator.speed"
    for name, result in known.items():
        here, there = (result.measured[where] for where in ("here", "there"))
        assert (here["size"], there["size"]) == (WORKS[name].size, WORKS[name].size_of_numba)
        assert min(cost[key] for cost in (here, there) for key in ("wall", "turns")) > 0
        assert {"processor", "cores", "python", "numpy", "numba", "date"} <= set(result.origin)


def test_the_quickest_run_is_kept():
    costs = {False: iter([3.0, 2.0, 4.0]), True: iter([6.0, 7.0, 40.0])}

    def run(size, numba):
        return {"wall": next(costs[numba]), "turns": size}

    work = WORKS["one_thread"]
    found = speed.measured(work, run)
    assert (found["here"]["wall"], found["there"]["wall"]) == (2, 6)
    assert found["there"]["size"] == found["there"]["turns"] == work.size_of_numba
    with pytest.raises(RuntimeError, match="one_thread of 50000 takes more than 150 s"):
        speed.measured(work, lambda size, numba: "takes more than 150 s")


@pytest.mark.parametrize(
    "name",
    [
        "reductions.sum_with_interleaved_addresses",
        "reductions.sum_that_ends_in_a_warp",
        "tiled_guard_or",
    ],
)
def test_numbas_simulator_still_says_what_was_recorded(monkeypatch, name):
    pytest.importorskip("numba_cuda")
    monkeypatch.setattr(numba_simulator, "SECONDS", 600)  # all three end, on a busy machine later
    measured = numba_simulator.recorded()[name].measured
    found = numba_simulator.apart(name)
    assert [found.get(key) for key in ("outcome", "line")] == [
        measured.get(key) for key in ("outcome", "line")
    ]


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """The values of the names of its cells, and what each cell printed, in order."""
    folder = tmp_path_factory.mktemp("guide")
    return run_cells(folder)


def run_cells(folder):
    """Run the cells one after the other, in a folder of their own, in this process."""
    scope, printed, before = {}, [], os.getcwd()
    try:
        for number, cell in enumerate(CELLS):
            code = re.sub(r"\A:tags: .*\n+", "", cell)
            if code.startswith("%%writefile "):
                name, _, text = code.removeprefix("%%writefile ").partition("\n")
                Path(name).write_text(text, "utf-8")
                continue
            file = folder / f"cell{number}.py"
            file.write_text(code, "utf-8")
            out = []
            scope["print"] = lambda *values, out=out: out.append(" ".join(map(str, values)))
            exec(compile(code, str(file), "exec"), scope)
            printed.append("\n".join(out))
    finally:
        made = Path.cwd()
        os.chdir(before)
        if made != Path(before):
            shutil.rmtree(made)
    return scope, [text for text in printed if text]


def test_its_code_runs_and_says_what_the_text_says(shown):
    scope, (raised, program, looked_at, memory) = shown
    assert raised.startswith("shared-race: thread")
    assert "part[t] += part[t + half]" in raised
    assert scope["hazard"].kind == "shared-race"
    assert scope["hazard"].code == "part[t] += part[t + half]"
    assert "[0. 2. 4. 6.]" in program
    assert "out-of-bounds" in program
    assert "if i <= x.size" in TEXT
    assert "thread (37) of block (0) > lanes x[i]\n32: 32.0 " in looked_at
    assert "-> x[i] *= 2\nthread (37) of block (0) > continue" in looked_at
    assert program.endswith("echo $?\n1")
    assert re.fullmatch(r"\d+ MB for one, [\d.]+ GB for thirty at once", memory)


WORKFLOW = re.search(r"```yaml\n(.*?)```", TEXT, re.S)[1]
HOMEWORK = """
import numpy as np
from numba import cuda

@cuda.jit
def one(x):
    x[cuda.grid(1)] = 1

one[2, 32](np.zeros({size}))
"""


@pytest.mark.parametrize(("size", "status"), [(64, 0), (63, 1)])
def test_its_workflow_tells_a_right_homework_from_a_wrong_one(size, status, tmp_path):
    *words, file = yaml.safe_load(WORKFLOW)["jobs"]["kernels"]["steps"][-1]["run"].split()
    assert words == ["gemmlab", "simulate"]
    (tmp_path / file).write_text(HOMEWORK.format(size=size), "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", *words, file],
        cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True,
    )  # fmt: skip
    assert done.returncode == status


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\]\(([\w/.]+)\)", TEXT))))
def test_its_links_lead_somewhere(target):
    assert (PAGE.parent / target).exists()


def test_it_is_in_the_contents():
    toc = yaml.safe_load((ROOT / "book" / "_toc.yml").read_text("utf-8"))
    assert {"file": "simulator"} in toc["parts"][1]["chapters"]

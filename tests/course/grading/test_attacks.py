"""Nothing that a notebook tries earns points, or reaches what judges it."""

import socket

import pytest

from gemmlab.course.grading import submission
from gemmlab.course.grading.judged import judged
from gemmlab.course.grading.processes import Grader
from tests.course.grading.attacks import OPEN, REFUSED, RUN
from tests.course.grading.notebooks import cells


def test_there_are_forty_attacks():
    assert len(REFUSED) + len(RUN) >= 40


def row(found):
    return found.state, found.diagnosis


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_earns_nothing(name):
    attack = REFUSED[name]
    found = judged(submission.read(cells(*attack.cells)), "04.1", "key")
    assert row(found) == (attack.state, attack.diagnosis), found.reason
    assert len(found.stages) < len(found.every) or not found.every


@pytest.fixture(scope="module")
def machine():
    """The walls of this machine, all of which are needed to try what runs: it is in earnest."""
    walls = Grader("seed").walls()
    if walls.why_not:
        pytest.skip(walls.told)
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.mark.measuring
@pytest.mark.parametrize("name", RUN)
def test_the_walls_hold_what_runs(name, machine, tmp_path):
    attack = RUN[name]
    known = f"FOLDER, PORT = {str(tmp_path)!r}, {machine}\n"
    notebook = cells(*attack.cells[:1], known + attack.code, *attack.cells[2:])
    (tmp_path / "another.ipynb").write_bytes(notebook)
    found = Grader("seed", start=("-c", OPEN)).one(notebook).judged["04.1"]
    assert found.state == attack.state, found.reason
    diagnoses = (attack.diagnosis,) if isinstance(attack.diagnosis, str) else attack.diagnosis
    assert found.diagnosis in diagnoses, found.reason
    assert [path.name for path in tmp_path.iterdir()] == ["another.ipynb"]

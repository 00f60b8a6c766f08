"""A warning in a cell fails its notebook's test; the site's build has the same rule."""

import json
import shutil
import subprocess
import sys

import pytest

from tests.support.paths import ROOT

CELLS = {
    "silent": ("1 + 1", True),
    "stdout": ("print('fine')", True),
    "stderr": ("import sys; print('oh', file=sys.stderr)", False),
    "warning": ("import warnings; warnings.warn('oh')", False),
    "numpy": ("import numpy as np; np.float64(1) / np.float64(0)", False),
}


@pytest.fixture(scope="module")
def told(tmp_path_factory) -> str:
    """What pytest says of a notebook with these cells, under the project's conftest.py."""
    folder = tmp_path_factory.mktemp("notebooks")
    shutil.copy(ROOT / "conftest.py", folder)
    cells = [
        {"cell_type": "code", "execution_count": None, "id": name, "metadata": {}, "outputs": [],
         "source": [source]}
        for name, (source, _) in CELLS.items()
    ]  # fmt: skip
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook = {"cells": cells, "metadata": {"kernelspec": kernel}}
    (folder / "a.ipynb").write_text(json.dumps(notebook | {"nbformat": 4, "nbformat_minor": 5}))
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-v", "--nbval-lax"]
    command += ["--nbval-current-env", "--rootdir", str(folder), str(folder)]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder).stdout


@pytest.mark.parametrize("number", range(len(CELLS)), ids=CELLS)
def test_a_cell_fails_by_what_it_writes_to_stderr(told, number):
    fine = list(CELLS.values())[number][1]
    (line,) = (line for line in told.splitlines() if f"Cell {number} " in line and "%]" in line)
    assert ("PASSED" if fine else "FAILED") in line, told


def test_the_message_quotes_the_cell(told):
    assert "the cell writes to stderr:" in told
    assert "UserWarning: oh" in told


def test_the_site_has_the_same_rule():
    assert 'nb_output_stderr = "error"' in (ROOT / "book" / "conf.py").read_text("utf-8")

"""The notes for the authors of numba-cuda-mlir: each example does, as printed, what it shows."""

import re
import subprocess
import sys

import pytest

from gemmlab.here import numbas
from tests.support.paths import ROOT

NOTES = [
    path.read_text("utf-8").partition("## For upstream")[2]
    for path in sorted((ROOT / "book" / "decisions").glob("04[25]-*.md"))
]
FIRST, *OTHERS = [code for note in NOTES for code in re.findall(r"```python\n(.*?)```", note, re.S)]
ENDS = re.compile(r"# (compiler bug)$")  # as its last line says


def test_the_notes_have_examples():
    assert all(note.count("```python") > 5 for note in NOTES)
    assert all("assert" in code or ENDS.search(code.strip()) for code in (FIRST, *OTHERS))


@pytest.mark.skipif(not numbas.has_mlir(), reason="numba-cuda-mlir is not installed")
@pytest.mark.parametrize("code", ["", *OTHERS], ids=lambda code: code.strip().partition("\n")[0])
def test_an_example_does_what_it_shows(code, tmp_path):
    """In a process of its own, of which gemmlab is no part."""
    script = tmp_path / "example.py"
    script.write_text(f"{FIRST}\n\n{code}", "utf-8")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, cwd=tmp_path)
    ends = ENDS.search(code.strip())
    assert (done.returncode != 0) == bool(ends), done.stderr[-1500:]
    assert not ends or ends[1] in done.stderr

"""Both Jupyter Books read this book: `pytest tests/browser/test_jupyter_book.py`, 15 minutes.

Each is installed from its registry into an environment of its own; the first executes all pages.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import venv
from pathlib import Path

import pytest

from tests.browser.lab_server import ROOT

pytestmark = pytest.mark.browser
FOLDERS = ("benchmarks", "book", "gemmlab", "lab", "notebooks")
SECONDS = 2400
ELSEWHERE = ("Could not find DOI", "did not resolve")  # what only a network answers


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what is in the repository, without anything built."""
    copy = tmp_path_factory.mktemp("clone")
    left_out = shutil.ignore_patterns("_build", "__pycache__", ".ipynb_checkpoints")
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, copy / folder, ignore=left_out)
    shutil.rmtree(copy / "book" / "notebooks", ignore_errors=True)
    for file in ("pyproject.toml", "README.md", "LICENSE", "LICENSE-text.md"):
        shutil.copy(ROOT / file, copy)
    return copy


def succeeds(command: list[str | Path], folder: Path) -> str:
    """Run a command, which must succeed; what it writes."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=SECONDS
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    return done.stdout + done.stderr


def pages(site: Path) -> set[str]:
    found = {path.relative_to(site) for path in site.rglob("*.html")}
    return {path.as_posix() for path in found if path.parts[0] not in ("_static", "lite")}


def sources(clone: Path) -> set[str]:
    """The pages that its sources ask for: chapters, guides and decisions."""
    book = clone / "book"
    found = [path.relative_to(book) for path in (*book.glob("*.md"), *book.glob("decisions/*.md"))]
    found += [path.relative_to(clone) for path in (clone / "notebooks").glob("*.ipynb")]
    return {path.with_suffix(".html").as_posix() for path in found}


def films(notebook: Path) -> int:
    """How many explorers the cells of a notebook show that become films."""
    cells = json.loads(notebook.read_text("utf-8"))["cells"]
    code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    return len(re.findall(r"^explorers\.(?!Fragments)\w+\(", code, re.MULTILINE))


def test_jupyter_book_1_makes_the_same_pages(clone: Path, tmp_path: Path):
    venv.create(tmp_path / "env", with_pip=True)
    python = tmp_path / "env" / "bin" / "python"
    needed = ["jupyter-book<2", "sphinx-mathjax-offline==0.0.2", "pillow>=10", f"{clone}[lab]"]
    succeeds([python, "-m", "pip", "install", "--quiet", *needed], clone)
    told = succeeds([python.with_name("jupyter-book"), "build", "book"], clone)
    assert "WARNING" not in told
    site = clone / "book" / "_build" / "html"
    assert pages(site) - {"genindex.html", "search.html"} == sources(clone)
    for path in sorted((clone / "notebooks").glob("*.ipynb")):
        page = (site / "notebooks" / f"{path.stem}.html").read_text("utf-8")
        assert page.count('class="gemmlab-film"') == films(path)
        assert page.count("cell_output") > 5


def test_jupyter_book_2_reads_every_page(clone: Path, tmp_path: Path):
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed, which brings mystmd")
    subprocess.run(["npm", "init", "-y"], cwd=tmp_path, check=True, capture_output=True)
    succeeds(["npm", "install", "--silent", "mystmd"], tmp_path)
    shutil.copytree(ROOT / "notebooks", clone / "book" / "notebooks", dirs_exist_ok=True)
    myst = tmp_path / "node_modules" / ".bin" / "myst"
    done = subprocess.run(
        [myst, "build", "--site", "--ci"],
        cwd=clone / "book", capture_output=True, text=True, timeout=SECONDS,
    )  # fmt: skip
    told = done.stdout + done.stderr  # without a network it ends where its theme is fetched
    read = set(re.findall(r"📖 Built (\S+) in", told))
    assert {f"notebooks/{path.name}" for path in (ROOT / "notebooks").glob("*.ipynb")} <= read
    assert {path.name for path in (ROOT / "book").glob("*.md")} <= read
    faults = [line for line in told.splitlines() if "⛔" in line]
    assert [line for line in faults if not any(word in line for word in ELSEWHERE)] == []
    assert "Cross reference target was not found" not in told

"""Each notebook opens with its question and its first picture, before anything has run."""

import ast
import re

import pytest

from book import openings
from book.film import PNG
from gemmlab import plots

NOTEBOOKS = list(openings.notebooks())
# The appendix draws errors that it emulates for seconds.
DRAWN = [
    pytest.param(path, marks=[pytest.mark.measuring] * path.stem.endswith("appendix"))
    for path in NOTEBOOKS
]
LONGEST = 130  # words above the first picture
each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def source(cell):
    return "".join(cell["source"])


def hidden(cell):
    """Whether the lab and the site fold the source of a cell."""
    metadata = cell["metadata"]
    in_the_lab = metadata.get("jupyter", {}).get("source_hidden", False)
    assert in_the_lab == ("hide-input" in metadata.get("tags", [])), cell["id"]
    return in_the_lab


def only_prepares(cell):
    """Whether a cell imports, and beyond that names a few things."""
    body = ast.parse(source(cell)).body
    imports = [isinstance(line, ast.Import | ast.ImportFrom) for line in body]
    named = [isinstance(line, ast.Assign) for line in body]
    return any(imports) and all(a or b for a, b in zip(imports, named, strict=True))


def must_fold(cell):
    return openings.DRAWS in source(cell) or only_prepares(cell)


def runs_a_kernel(cell):
    """Whether there is a kernel in a cell, or a launch of one: what a learner should read."""
    return bool(re.search(r"\bcuda\.|\bsimulate\(|\.check\(|exercises\.get\(", source(cell)))


@each_notebook
def test_code_that_only_draws_or_imports_is_folded_and_what_runs_a_kernel_is_not(path):
    code = [cell for cell in openings.read(path)["cells"] if cell["cell_type"] == "code"]
    assert [cell["id"] for cell in code if must_fold(cell) and not hidden(cell)] == []
    both = [cell["id"] for cell in code if must_fold(cell) and runs_a_kernel(cell)]
    assert both == [], "draw in a cell of its own"


def test_the_rule_of_folding_can_fail():
    def cell(text, **metadata):
        return {"id": "it", "source": [text], "metadata": metadata}

    assert must_fold(cell("figure, axes = plots.figure(3, 4)\nfigure"))
    assert must_fold(cell("import numpy as np\n\ngpu = 3"))
    assert not must_fold(cell("import numpy as np\n\ndef kernel(x):\n    x[0] = 1"))
    assert runs_a_kernel(cell("simulate(kernel, 1, 32, x)"))
    assert hidden(cell("1", jupyter={"source_hidden": True}, tags=["hide-input"]))
    with pytest.raises(AssertionError):
        hidden(cell("1", tags=["hide-input"]))


@each_notebook
def test_a_notebook_opens_with_a_question_and_a_picture(path):
    notebook = openings.read(path)
    first, *_ = (i for i, cell in enumerate(notebook["cells"]) if cell["cell_type"] == "code")
    assert first == 1
    above = source(notebook["cells"][0])
    assert above.startswith("# ")
    assert len(above.split()) <= LONGEST
    *before, picture = openings.opening(notebook)
    assert all(map(hidden, [*before, picture]))
    assert len(before) == path.stem.endswith("appendix")


@pytest.mark.parametrize("path", DRAWN, ids=lambda path: path.stem)
def test_the_first_picture_is_stored_as_it_is_drawn_and_nothing_else(path):
    notebook = openings.read(path)
    cells = openings.opening(notebook)
    assert openings.told(cells[-1]) == plots.alt(openings.drawn(cells)) != "", (
        f"run python -m book.openings: {path.name}"
    )
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            assert len(cell["outputs"]) == (cell["id"] == cells[-1]["id"])
            assert bool(cell["execution_count"]) == bool(cell["outputs"])


def test_a_stored_picture_looks_as_one_that_is_drawn_now():
    cells = openings.opening(openings.read(NOTEBOOKS[0]))
    (stored,) = cells[-1]["outputs"]
    pages = (stored, openings.output(openings.drawn(cells), 1))
    # Its size to a pixel depends on the version of what draws.
    seen = ["".join(shown["data"]["text/html"]) for shown in pages]
    kept = [re.sub(r'\b(width|height)="\d+"', "", PNG.sub("", page)) for page in seen]
    assert kept[0] == kept[1], "run python -m book.openings"
    assert all(len(PNG.findall(page)[0]) > 4000 for page in seen)


@each_notebook
def test_a_fold_is_followed_by_a_fold_or_a_heading_or_ends_its_cell(path):
    """The lab puts no space below a fold: a paragraph would stick to it."""
    after = re.compile(r"</details>\s*(?!<details|#|\s)(.+)")
    for cell in openings.read(path)["cells"]:
        if cell["cell_type"] == "markdown":
            assert not after.findall(source(cell)), cell["id"]

"""Updates of the course and the learner's changes: neither is lost, whatever comes first."""

import json
import multiprocessing
import os

import pytest

from lab.working_copy import LAID, digest, trust, update
from tests.support.faults import faults


def notebook(*sources: str, outputs: tuple = ()) -> str:
    cells = [
        {"cell_type": "code", "metadata": {}, "source": [source], "outputs": list(outputs)}
        for source in sources
    ]
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


@pytest.fixture
def chapters(tmp_path):
    folder = tmp_path / "notebooks"
    folder.mkdir()
    (folder / "01.ipynb").write_text(notebook("one"))
    (folder / "02.ipynb").write_text(notebook("two"))
    return folder


@pytest.fixture
def work(tmp_path):
    return tmp_path / "work"


def state(work) -> dict[str, str]:
    """File -> the source of its first cell."""
    return {
        path.name: json.loads(path.read_text())["cells"][0]["source"][0]
        for path in sorted(work.glob("*.ipynb"))
    }


def test_the_first_time_everything_is_laid(chapters, work):
    assert update(chapters, work) == []
    assert state(work) == {"01.ipynb": "one", "02.ipynb": "two"}
    assert {path.name for path in work.iterdir()} == {"01.ipynb", "02.ipynb", LAID}


def test_without_an_update_changes_stay_and_nothing_is_said(chapters, work):
    update(chapters, work)
    (work / "01.ipynb").write_text(notebook("mine"))
    assert update(chapters, work) == []
    assert state(work) == {"01.ipynb": "mine", "02.ipynb": "two"}


def test_an_unchanged_chapter_is_replaced(chapters, work):
    update(chapters, work)
    (chapters / "01.ipynb").write_text(notebook("ONE"))
    assert update(chapters, work) == []
    assert state(work) == {"01.ipynb": "ONE", "02.ipynb": "two"}


def test_a_chapter_that_was_only_run_is_replaced(chapters, work):
    update(chapters, work)
    stream = {"output_type": "stream", "name": "stdout", "text": ["1"]}
    (work / "01.ipynb").write_text(notebook("one", outputs=(stream,)))
    (chapters / "01.ipynb").write_text(notebook("ONE"))
    assert update(chapters, work) == []
    assert state(work)["01.ipynb"] == "ONE"


def test_a_changed_chapter_is_kept_and_the_new_one_laid_beside_it_once(chapters, work):
    update(chapters, work)
    (work / "01.ipynb").write_text(notebook("mine"))
    (chapters / "01.ipynb").write_text(notebook("ONE"))
    (told,) = update(chapters, work)
    assert "01.ipynb" in told
    assert "01.new2.ipynb" in told
    after = {"01.ipynb": "mine", "01.new2.ipynb": "ONE", "02.ipynb": "two"}
    assert state(work) == after
    assert update(chapters, work) == []
    assert state(work) == after


def test_further_updates_follow_in_the_new_file_until_that_is_changed_too(chapters, work):
    update(chapters, work)
    (work / "01.ipynb").write_text(notebook("mine"))
    for version in ("ONE", "1"):
        (chapters / "01.ipynb").write_text(notebook(version))
        assert len(update(chapters, work)) == 1
    assert state(work) == {"01.ipynb": "mine", "01.new2.ipynb": "1", "02.ipynb": "two"}
    (work / "01.new2.ipynb").write_text(notebook("mine too"))
    (chapters / "01.ipynb").write_text(notebook("I"))
    (told,) = update(chapters, work)
    assert "01.new3.ipynb" in told
    assert state(work)["01.new2.ipynb"] == "mine too"
    assert state(work)["01.new3.ipynb"] == "I"


def test_a_deleted_copy_comes_back(chapters, work):
    update(chapters, work)
    (work / "01.ipynb").unlink()
    assert update(chapters, work) == []
    assert state(work)["01.ipynb"] == "one"


def test_the_learner_s_own_notebooks_are_left_alone(chapters, work):
    update(chapters, work)
    (work / "mine.ipynb").write_text(notebook("mine"))
    (chapters / "01.ipynb").write_text(notebook("ONE"))
    update(chapters, work)
    assert state(work)["mine.ipynb"] == "mine"


@pytest.mark.parametrize("damage", ["", '{"cells": ', '{"cells": [3]}', "[]"])
def test_a_damaged_copy_counts_as_changed(chapters, work, damage):
    update(chapters, work)
    (work / "01.ipynb").write_text(damage)
    (chapters / "01.ipynb").write_text(notebook("ONE"))
    assert len(update(chapters, work)) == 1
    assert (work / "01.ipynb").read_text() == damage
    assert digest(work / "01.new2.ipynb") == digest(chapters / "01.ipynb")


def test_copies_are_trusted_as_long_as_they_are_the_course_s(chapters, work, tmp_path, monkeypatch):
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "data"))
    import nbformat
    from nbformat.sign import NotebookNotary

    chapter = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1")])
    names = ("01.ipynb", "02.ipynb", "03.ipynb")
    for name in names:
        nbformat.write(chapter, chapters / name)
    update(chapters, work)
    foreign = nbformat.v4.new_output("display_data", {"text/html": "<script>alert(1)</script>"})
    chapter.cells[0].outputs = [foreign]
    nbformat.write(chapter, work / "03.ipynb")
    changed = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("2")])
    nbformat.write(changed, work / "02.ipynb")
    trust(chapters, work)
    with NotebookNotary() as notary:
        trusted = [
            notary.check_signature(nbformat.read(work / name, as_version=4)) for name in names
        ]
    assert trusted == [True, False, False]


@pytest.mark.parametrize("damage", [None, "", "[]", '{"01.ipynb": '])
def test_without_a_memory_of_what_was_laid_no_change_is_lost(chapters, work, damage):
    update(chapters, work)
    (work / LAID).unlink()
    if damage is not None:
        (work / LAID).write_text(damage)
    (work / "01.ipynb").write_text(notebook("mine"))
    assert len(update(chapters, work)) == 1
    after = {"01.ipynb": "mine", "01.new2.ipynb": "one", "02.ipynb": "two"}
    assert state(work) == after
    (chapters / "02.ipynb").write_text(notebook("TWO"))  # it had not been changed
    assert update(chapters, work) == []
    assert state(work) == after | {"02.ipynb": "TWO"}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be copied here")
def test_whatever_fails_no_work_of_a_learner_is_lost(chapters, work, no_sync):
    """Each step of an update fails in turn; the next update brings everything up to date."""
    update(chapters, work)
    (work / "01.ipynb").write_text(notebook("mine"))
    (chapters / "01.ipynb").write_text(notebook("ONE"))
    (chapters / "02.ipynb").write_text(notebook("TWO"))
    begun = {path.name: path.read_bytes() for path in work.iterdir()}
    tried = 0
    for _ in faults(lambda: update(chapters, work)):
        tried += 1
        now = state(work)
        assert now["01.ipynb"] == "mine"
        assert now["02.ipynb"] in ("two", "TWO")
        update(chapters, work)
        assert state(work) == {"01.ipynb": "mine", "01.new2.ipynb": "ONE", "02.ipynb": "TWO"}
        for path in work.iterdir():
            path.unlink()
        for name, content in begun.items():
            (work / name).write_bytes(content)
    assert tried >= 30


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be copied here")
def test_labs_that_start_at_once_wait_for_each_other(chapters, work):
    update(chapters, work)
    for chapter in chapters.iterdir():
        chapter.write_text(notebook(f"new {chapter.name}"))
    start = multiprocessing.get_context("fork").Process
    labs = [start(target=update, args=(chapters, work)) for _ in range(4)]
    for lab in labs:
        lab.start()
    for lab in labs:
        lab.join()
    assert [lab.exitcode for lab in labs] == [0] * 4
    assert state(work) == {"01.ipynb": "new 01.ipynb", "02.ipynb": "new 02.ipynb"}

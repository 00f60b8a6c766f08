"""Executed pages are kept under a key that any change of what they depend on changes."""

import os

import pytest

from book import executed
from tests.support.paths import ROOT

FACTS = ["Linux", "3.12.1", "numpy 2.4.6"]
TREE = {
    "gemmlab/device.py": "CLOCK = 1",
    "gemmlab/recorded/h200/speeds.json": "[1, 2]",
    "benchmarks/readme.py": "LINES = 3",
    "book/film.py": "MOST = 10",
    "book/outside.py": "",
    "book/vectors.py": "",
    "book/index.md": "# A page",
    "ipython/profile_default/startup/films.py": "import book.film",
    "ipython/profile_default/ipython_kernel_config.py": "",
}


@pytest.fixture
def tree(tmp_path):
    for name, text in TREE.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    return tmp_path


def key(tree, facts=FACTS):
    return executed.key(tree, tree / "ipython", facts)


@pytest.mark.parametrize("name", [name for name in TREE if name != "book/index.md"])
def test_a_change_of_what_outputs_depend_on_is_another_key(tree, name):
    before = key(tree)
    (tree / name).write_text(TREE[name] + " ", "utf-8")
    assert key(tree) != before


def test_files_that_come_go_and_are_renamed_are_another_key(tree):
    keys = [key(tree)]
    (tree / "gemmlab" / "recorded" / "h100.json").write_text("", "utf-8")
    keys.append(key(tree))
    (tree / "gemmlab" / "recorded" / "h100.json").rename(tree / "gemmlab" / "h100.json")
    keys.append(key(tree))
    (tree / "gemmlab" / "device.py").unlink()
    keys.append(key(tree))
    assert len(set(keys)) == len(keys)


def test_another_machine_or_another_version_is_another_key(tree):
    others = [["Windows", *FACTS[1:]], [FACTS[0], "3.12.2", FACTS[2]], [*FACTS[:2], "numpy 2.5"]]
    assert len({key(tree, facts) for facts in [FACTS, *others]}) == 4


def test_dates_bytecode_and_the_text_of_pages_change_nothing(tree):
    """A page's own cells are MyST-NB's to compare; its text needs no execution."""
    before = key(tree)
    os.utime(tree / "gemmlab" / "device.py", (1, 1))
    (tree / "gemmlab" / "__pycache__").mkdir()
    (tree / "gemmlab" / "__pycache__" / "device.cpython-312.pyc").write_bytes(b"1")
    (tree / "gemmlab" / "__pycache__" / "device.run-2.py312.1.nbc").write_bytes(b"1")
    (tree / "book" / "index.md").write_text("# Another text", "utf-8")
    (tree / "ipython" / "profile_default" / "history.sqlite").write_bytes(b"1")
    assert key(tree) == before


def test_the_machine_says_what_draws_and_what_compiles():
    names = {fact.split()[0] for fact in executed.machine()[3:]}
    assert {"numpy", "matplotlib", "numba"} <= names


def test_what_is_read_is_there_and_holds_all_of_the_library():
    found = {path.relative_to(ROOT).as_posix() for path in executed.files(ROOT, executed.READ)}
    assert {name for name in executed.READ if "." in name} <= found
    assert {"gemmlab/__init__.py", "gemmlab/devices/h200.toml", "benchmarks/readme.py"} <= found


def test_pages_of_the_last_keys_are_kept(tree, monkeypatch):
    monkeypatch.setattr(executed, "ROOT", tree)
    monkeypatch.setattr(executed, "machine", lambda: FACTS)
    kept, made = tree / "kept", []
    for most in range(executed.KEPT + 1):
        (tree / "book" / "film.py").write_text(f"MOST = {most}", "utf-8")
        made.append(executed.folder(kept, tree / "ipython"))
        (made[-1] / "global.db").write_bytes(b"1")
        os.utime(made[-1], (most, most))
    assert sorted(kept.iterdir()) == sorted(made[1:])
    assert executed.folder(kept, tree / "ipython") == made[-1]
    assert (made[-1] / "global.db").is_file()

"""Files are written whole, by one process at a time."""

import multiprocessing
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gemmlab.here import files
from tests.support.faults import KILLED, RAISED, WENT_ON, faults

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be copied here")


def test_put_makes_folders_and_replaces(tmp_path):
    path = tmp_path / "a" / "b.txt"
    for content in (b"one", b"two"):
        files.put(path, content)
        assert path.read_bytes() == content
    assert list(path.parent.iterdir()) == [path]


@forks
def test_a_file_is_the_old_one_or_the_new_one_whatever_fails(tmp_path, no_sync):
    path, seen = tmp_path / "kept.txt", set()
    path.write_bytes(b"old")
    for way, step, ended in faults(lambda: files.put(path, b"the new one")):
        content = path.read_bytes()
        if way == "full":
            assert content == {RAISED: b"old", WENT_ON: b"the new one"}[ended], step
        assert content in (b"old", b"the new one")
        assert path.parent.joinpath("kept.txt").exists()
        seen.add((way, ended, content))
        for other in set(tmp_path.iterdir()) - {path}:
            assert (ended, other.name[0]) == (KILLED, "."), "what is half written is left over"
            other.unlink()
        path.write_bytes(b"old")
    assert {("full", RAISED, b"old"), ("interrupted", RAISED, b"old")} <= seen
    assert {("killed", KILLED, b"old"), ("killed", KILLED, b"the new one")} <= seen


def test_two_that_write_the_same_file_at_once_both_end_well(tmp_path, monkeypatch):
    """As threads do that have judged the same notebook, handed in twice."""
    path, both = tmp_path / "kept.json", threading.Barrier(2, timeout=10)
    synced = os.fsync

    def together(number):
        both.wait()
        synced(number)

    monkeypatch.setattr(files.os, "fsync", together)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(files.put, [path] * 2, [b"the same"] * 2))
    assert path.read_bytes() == b"the same"
    assert list(tmp_path.iterdir()) == [path]


def add(path: Path) -> None:
    for _ in range(15):
        with files.locked(path.parent):
            files.put(path, str(int(path.read_text()) + 1).encode())


@forks
def test_who_adds_to_a_file_keeps_others_out(tmp_path):
    path = tmp_path / "count"
    path.write_text("0")
    start = multiprocessing.get_context("fork").Process
    workers = [start(target=add, args=(path,)) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert path.read_text() == "60"


@forks
def test_a_holder_that_is_killed_holds_nothing(tmp_path):
    if not (child := os.fork()):
        with files.locked(tmp_path):
            os._exit(0)
    os.waitpid(child, 0)
    with files.locked(tmp_path):
        assert list(tmp_path.iterdir()) == []

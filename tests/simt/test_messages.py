"""Notes and messages: what they name, and in which precision."""

import importlib.util
from dataclasses import replace

import numpy as np
import pytest
from numpy import float32

from gemmlab import cuda, simulate
from gemmlab.simt import Hazard
from gemmlab.simt.races.hazards import Note
from tests.simt.test_shared_memory import static_bytes
from tests.support.launches import hazards, line_of

# -------------------------------------------------------------------------------------------- notes


def returns_early(x):
    t = cuda.threadIdx.x
    if t >= 20:
        return
    for _ in range(2):
        cuda.syncthreads()
    x[cuda.grid(1)] = 1


def test_threads_that_returned_before_a_barrier_are_noted():
    report = simulate(returns_early, 3, 40, np.zeros(120, np.float32))
    assert report.hazards == []
    (note,) = report.notes
    assert (note.line, note.code) == (line_of(returns_early, "sync"), "cuda.syncthreads()")
    assert (note.block, note.thread, note.count) == ((0, 0, 0), (20, 0, 0), 3 * 20 * 2)
    assert "thread (20) has returned before this barrier" in note.message
    assert "[block (0), 20 of its threads]" in note.message
    assert repr(report).endswith("0 hazards, 1 notes>")
    text = str(report.listing())
    assert f"note: {note.message}\n" in text
    assert "[120 times in all]" in text
    assert "note: thread (20) has returned" in report._repr_html_()


def some_blocks_return(x):
    if cuda.blockIdx.x == 1 and cuda.threadIdx.x > 2:
        return
    if cuda.blockIdx.x == 2:
        return
    cuda.syncthreads()
    x[0, cuda.grid(1)] = 1


@pytest.mark.parametrize("lanes", [1 << 16, 32])
def test_a_note_names_the_block(lanes, monkeypatch):
    """A block of which all threads have returned has nothing to note."""
    monkeypatch.setattr("gemmlab.simt.launch.LANES", lanes)
    report = simulate(some_blocks_return, 4, 8, np.zeros((1, 32)))
    (note,) = report.notes
    assert (note.block, note.thread, note.count) == ((1, 0, 0), (3, 0, 0), 5)


def test_nothing_is_noted_of_lanes_without_a_thread():
    def kernel(x):
        cuda.syncthreads()
        x[cuda.grid(1)] = 1

    report = simulate(kernel, 2, 20, np.zeros(40))
    assert report.notes == ()
    assert repr(report).endswith("0 hazards>")


def test_lines_of_two_files_with_one_number_are_told_apart():
    report = simulate(static_bytes(1), 1, 1, np.zeros(1), on_hazard="collect")
    place = (3, "x[i] = 1", (0, 0, 0))
    hazard = Hazard("misaligned", *place, ((0, 0, 0),), "text", file="one.py")
    note = Note(*place, (0, 0, 0), "text", "returned", file="one.py", count=4)
    for file in ("one.py", "two.py", "one.py"):
        report.add(replace(hazard, file=file))
        report.note(replace(note, file=file))
    assert [(h.file, h.count) for h in report.hazards] == [("one.py", 2), ("two.py", 1)]
    assert [(n.file, n.count) for n in report.notes] == [("one.py", 8), ("two.py", 4)]


# ----------------------------------------------------------------------------------------- messages


def rows_of_a_view(x):
    row = x[1]
    row[cuda.threadIdx.x // 2] = cuda.threadIdx.x  # fault


@pytest.mark.parametrize("order", ["C", "F", "padded"])
def test_an_element_is_named_by_its_place_in_the_whole_array(order):
    x = np.zeros((3, 32), np.float32, order="F" if order == "F" else "C")
    x = np.zeros((3, 40), np.float32)[:, :32] if order == "padded" else x
    (hazard,) = hazards(rows_of_a_view, 1, 32, x)
    assert (
        "thread (0) writes the same element as thread (1), x[1, 0] (0.0 and 1.0)" in hazard.message
    )


def shared_rows(x):
    s = cuda.shared.array((4, 8), float32)
    row = s[2]
    row[cuda.threadIdx.x // 4] = 0.1 + cuda.threadIdx.x  # fault
    x[0] = 1


def test_values_are_written_in_their_own_precision():
    message = hazards(shared_rows, 1, 32, np.zeros(1, np.float32))[0].message
    assert "s[2, 0] (0.1 and 3.1), with no barrier or syncwarp between them" in message


def test_a_trace_knows_files_apart(tmp_path):
    """A device function of another file, at a line with the same number."""
    path = tmp_path / "elsewhere.py"
    first = line_of(test_a_trace_knows_files_apart, "# here\n")
    path.write_text("\n" * (first - 2) + "def read(array, i):\n    return array[i + 1]\n")
    spec = importlib.util.spec_from_file_location("elsewhere", path)
    elsewhere = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(elsewhere)
    read = elsewhere.read

    def kernel(x):
        i = cuda.threadIdx.x
        if i < 8:
            x[i] = 2 * read(x, i)  # here

    report = simulate(kernel, 1, 32, np.zeros(64), trace="x[i] =", on_hazard="collect")
    assert [(a.op, a.line) for a in report.trace] == [("store", first)]

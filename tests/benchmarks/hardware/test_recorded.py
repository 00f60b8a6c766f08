"""The library agrees with the records of GPUs: every piece of every check, compared again."""

import numpy as np
import pytest

from benchmarks.hardware import pages, store
from benchmarks.hardware.checks import CHECKS, counters, sanitizer
from benchmarks.page_tables import filled
from gemmlab.device import device

RECORDED = [
    (name, check, piece)
    for name in store.DEVICES
    for check in CHECKS
    for piece, result in store.recorded(name, check).items()
    if not result.left_out
]
FILES = sorted({(name, check) for name, check, _ in RECORDED})
# Kernels of the course are simulated whole; the counters of small ones and their edge shapes, which
# everybody's tests compare, differ where the simulator or a kernel does.
LONG = ("kernels",)


@pytest.mark.parametrize(
    ("name", "check", "piece"),
    [
        pytest.param(*one, marks=[pytest.mark.measuring] if one[1] in LONG else [])
        for one in RECORDED
    ],
)
def test_nothing_differs(name, check, piece):
    result = store.recorded(name, check)[piece]
    found = CHECKS[check].compare(piece, result.measured, device(name))
    assert found.compared > 0
    assert found.differing == 0, "\n".join(found.texts)


@pytest.mark.parametrize(("name", "check"), FILES)
def test_every_piece_is_recorded_with_its_origin(name, check):
    results, pieces = store.recorded(name, check), set(CHECKS[check].pieces(device(name)))
    assert set(results) <= pieces
    assert pieces - set(results) <= set(sanitizer.WRONG)  # the book's table names those without
    for result in results.values():
        assert result.origin["device"] in (device(name).title, *device(name).match)
        assert result.origin["date"]
        assert not result.differing
        assert not result.failed


def test_all_that_an_h200_was_asked_is_recorded():
    here = {check for name, check in FILES if name == "h200"}
    asked = {
        *("instructions", "layouts", "dot_products", "products", "random_kernels"),
        *("counters", "realistic", "loads", "wide_accesses", "sanitizer"),
    }
    assert asked <= here


def spoiled(measured):
    """One bit of the last array is another; where there are no arrays, every count is one more."""
    arrays = [key for key, value in measured.items() if isinstance(value, np.ndarray)]
    if not arrays:
        return one_more(measured)
    wrong = measured[arrays[-1]].copy()
    wrong.view(np.uint8).reshape(-1)[0] ^= 1
    return {**measured, arrays[-1]: wrong}


def one_more(value):
    if isinstance(value, dict):
        return {k: one_more(v) for k, v in value.items()}
    if isinstance(value, list):
        return [one_more(v) for v in value] or ["a finding"]
    return value + 1 if type(value) is int else value


@pytest.mark.parametrize(("name", "check"), FILES)
def test_a_wrong_answer_would_be_found(name, check):
    results = (r for r in store.recorded(name, check).values() if not r.left_out)
    result = next(results)
    found = CHECKS[check].compare(result.piece, spoiled(result.measured), device(name))
    assert found.differing > 0
    assert found.texts


@pytest.mark.measuring
@pytest.mark.parametrize("page", pages.PAGES, ids=lambda page: page.stem)
def test_the_tables_of_the_book_are_those_of_the_records(page):
    text = page.read_text("utf-8")
    assert filled(text, pages.TABLES) == text, "run: python -m benchmarks.hardware.pages"


def test_a_kernel_that_was_edited_since_differs():
    measured = store.recorded("h200", "counters")["banks"].measured
    one = {**measured["reduction"], "source_sha256": "0" * 16}
    found = counters.compare("banks", {**measured, "reduction": one}, device("h200"))
    assert found.differing == 1
    assert "reduction: hash of the source" in found.texts[0]

"""Notebooks under test: a cell that writes to stderr, as a Python warning does, fails.

Doctests that compile a kernel are skipped where the compilers are missing.
"""

import importlib.util
from pathlib import Path

import pytest

pytest_plugins = ["tests.support.durations"]


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out what one of two compilers alone imports, where that is not installed.

    Any other file that cannot be imported is an error: none is passed over in silence.
    """
    needed = {"numba_cuda", "numba_cuda_mlir"} & set(collection_path.parts)
    return True if any(importlib.util.find_spec(name) is None for name in needed) else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip doctests that compile a kernel, by `predict_time`, where that cannot be."""
    found = [
        item
        for item in items
        if isinstance(item, pytest.DoctestItem)
        and any("predict_time(" in example.source for example in item.dtest.examples)
    ]
    if found:
        from gemmlab.here.compilers import lacking

        for item in found if lacking() else ():
            item.add_marker(pytest.mark.skip(reason=lacking()))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item):
    """Look at what a cell has written, once nbval has run it."""
    result = yield
    outputs = getattr(item, "test_outputs", ())  # nbval's, of the cell of a notebook
    complaints = [o.text for o in outputs if o.output_type == "stream" and o.name == "stderr"]
    if complaints:
        pytest.fail(f"the cell writes to stderr:\n{''.join(complaints)}", pytrace=False)
    return result

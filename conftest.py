"""Notebooks under test: a cell that writes to stderr, as a Python warning does, fails."""

import pytest

pytest_plugins = ["tests.support.durations"]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item):
    """Look at what a cell has written, once nbval has run it."""
    result = yield
    outputs = getattr(item, "test_outputs", ())  # nbval's, of the cell of a notebook
    complaints = [o.text for o in outputs if o.output_type == "stream" and o.name == "stderr"]
    if complaints:
        pytest.fail(f"the cell writes to stderr:\n{''.join(complaints)}", pytrace=False)
    return result

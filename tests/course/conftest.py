"""What the tests of exercises share."""

import pytest

from gemmlab.course.judging import timed

pytest.register_assert_rewrite("tests.course.kill_matrix")


@pytest.fixture(autouse=True)
def untimed(request, monkeypatch):
    """Kernels are compiled in the tests that say so, which need the tools for it."""
    if not request.node.get_closest_marker("ptxas"):
        monkeypatch.setattr(timed, "lacking", lambda: "there is no compiler in this test")

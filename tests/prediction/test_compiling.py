"""What compiling needs: found where it is, named where it is not, with the way to have it."""

import pytest

from gemmlab.prediction import compiling


@pytest.fixture(autouse=True)
def asked_anew():
    compiling.missing.cache_clear()
    yield
    compiling.missing.cache_clear()


@pytest.mark.ptxas
def test_nothing_is_missing_where_all_is_there():
    assert compiling.missing() == ()
    assert compiling.lacking() == ""


def test_what_is_missing_is_named_in_one_line(monkeypatch):
    def no_tool(name):
        if name == "nvdisasm":
            raise RuntimeError("none")

    monkeypatch.setattr(compiling, "find_spec", lambda name: None if name == "elftools" else name)
    monkeypatch.setattr(compiling, "tool", no_tool)
    assert compiling.missing() == ("pyelftools", "nvdisasm")
    assert compiling.lacking() == (
        'there is no pyelftools and no nvdisasm; python -m pip install "gemmlab[gpu]" '
        "(Linux, Windows; no GPU is needed)"
    )

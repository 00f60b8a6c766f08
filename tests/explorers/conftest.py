"""What the tests of explorers share."""

import pytest

from gemmlab.explorers import KernelLab
from gemmlab.explorers.shared import running
from gemmlab.explorers.shared.base import Picture


@pytest.fixture
def undrawn(monkeypatch):
    """Explorers show no picture: for tests that go through many, of artists and sentences alone."""
    monkeypatch.setattr(Picture, "draw", lambda *arguments: None)


@pytest.fixture(autouse=True)
def uncompiled(monkeypatch):
    """No kernel is compiled beside a test: those of forecasts say when one is."""
    monkeypatch.setattr(running, "lacking", lambda: "there is no compiler in this test")


@pytest.fixture
def lab():
    """A kernel that the simulator runs in a moment."""
    return KernelLab("tiled", n=32, tile=16, backend="simulator")

"""What the tests of explorers share."""

import pytest

from gemmlab.explorers.base import Picture


@pytest.fixture
def undrawn(monkeypatch):
    """Explorers show no picture: for tests that go through many, of artists and sentences alone."""
    monkeypatch.setattr(Picture, "draw", lambda *arguments: None)

"""Who waits long sees how far a forecast is, and nobody else."""

import io
import time

import pytest

from gemmlab.compiled.forecast import waiting


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(("stream", "shows"), [(Terminal, True), (io.StringIO, False)])
def test_a_bar_is_shown_on_a_terminal_and_goes_away(stream, shows, monkeypatch):
    monkeypatch.setattr(waiting, "PATIENCE", 0)
    monkeypatch.setattr(waiting, "TICK", 0.005)
    screen = stream()
    with waiting.waiting(screen):
        waiting.tell(0.5, "an SM is simulated")
        time.sleep(0.1)
    assert ("[############............] 0 s  an SM is simulated" in screen.getvalue()) == shows
    assert screen.getvalue().rpartition("\r")[0][-20:].strip() == ""


def test_nothing_is_shown_of_what_is_soon_done():
    screen = Terminal()
    with waiting.waiting(screen):
        waiting.tell(0.5, "an SM is simulated")
    assert not screen.getvalue()

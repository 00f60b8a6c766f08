"""What each file of tests costs: recorded, so that the longest begin first and a budget is kept.

`run.py test --record-durations`, on a machine with nothing else to do, writes the CPU seconds of
the files that it runs, those of their child processes included, into `tests/durations.json`.
Nothing else looks at a clock: the order of files and the test of the budget read what is recorded.

The root's `conftest.py` loads this as a plugin of pytest.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.support.paths import ROOT

FILE = ROOT / "tests" / "durations.json"
DOCTESTS = "gemmlab"  # all of them are one entry
COPYING = "tests/course/"  # the tests that copy their process again and again
START = "start"  # of one process: imports and collection
EVERYBODY, MEASURING = "everybody", "measuring"


def files() -> list[str]:
    """The files that must have an entry, and the doctests."""
    tests = (ROOT / "tests").rglob("test_*.py")
    found = [path.relative_to(ROOT) for path in (*tests, *(ROOT / "notebooks").glob("*.ipynb"))]
    return [DOCTESTS, *sorted(p.as_posix() for p in found if p.parts[1] != "browser")]


def recorded() -> dict[str, dict[str, float]]:
    """CPU seconds by who runs them, then by file."""
    return json.loads(FILE.read_text("utf-8"))


def key(path: Path) -> str:
    """The entry that an item of this file belongs to."""
    place = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
    return DOCTESTS if place.parts[0] == DOCTESTS else place.as_posix()


def longest_first(paths: Iterable[Path], seconds: dict[str, float]) -> list[Path]:
    """Files in the order in which they should begin; one that is not known yet comes first.

    Those of exercises begin before all others: each answer is judged in a copy of the process,
    which costs the more, the more a process holds, and the other tests let it grow.
    """

    def place(path: Path) -> tuple[bool, float]:
        name = key(path)
        return not name.startswith(COPYING), -seconds.get(name, float("inf"))

    return sorted(paths, key=place)


def used() -> float:
    """CPU seconds of this process, and of those children that have ended."""
    return sum(os.times()[:4])


# ------------------------------------------------------------------------------------- the plugin


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option that records."""
    told = "write the CPU seconds of each file into tests/durations.json"
    parser.addoption("--record-durations", action="store_true", help=told)


def pytest_configure(config: pytest.Config) -> None:
    """Where one process runs tests, take its time; where all others' times arrive, add them."""
    if not config.getoption("--record-durations"):
        return
    if hasattr(config, "workerinput") or not config.getoption("numprocesses", None):
        config.pluginmanager.register(Clock(), "clock of the tests")
    if not hasattr(config, "workerinput"):
        recorder = Recorder(names_no_path(config))
        config.pluginmanager.register(recorder, "recorder of durations")


def names_no_path(config: pytest.Config) -> bool:
    """Whether all tests are collected, since the command names none."""
    return config.args_source == config.ArgsSource.TESTPATHS


def left_out(config: pytest.Config) -> bool:
    """Whether tests marked `measuring` are left out: neither a path nor -m asks for any."""
    return names_no_path(config) and not config.option.markexpr


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The longest files begin first; what only measuring needs is left out unless asked for."""
    if left_out(config):
        measuring = [item for item in items if item.get_closest_marker("measuring")]
        config.hook.pytest_deselected(items=measuring)
        items[:] = [item for item in items if not item.get_closest_marker("measuring")]
    seconds = Counter()
    for some in recorded().values():
        seconds.update(some)
    paths = dict.fromkeys(item.path for item in items)
    order = {path: i for i, path in enumerate(longest_first(paths, seconds))}
    items.sort(key=lambda item: order[item.path])


class Clock:
    """Takes the time of each test, in the process that runs it."""

    def __init__(self) -> None:
        self.seconds = {EVERYBODY: Counter(), MEASURING: Counter()}

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """With what it sets up and tears down: a notebook's process ends with its last cell."""
        before = used()
        try:
            return (yield)
        finally:
            of = MEASURING if item.get_closest_marker("measuring") else EVERYBODY
            self.seconds[of][key(item.path)] += used() - before

    def pytest_collection_finish(self) -> None:
        """All that a process does before its first test."""
        self.seconds[EVERYBODY][START] = used()

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """To the process that gave the work out, or straight to the file."""
        found = {of: dict(some) for of, some in self.seconds.items()}
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["durations"] = found
        else:
            session.config.pluginmanager.get_plugin("recorder of durations").add(found)


class Recorder:
    """Adds the times of all processes and writes them."""

    def __init__(self, all_collected: bool) -> None:
        self.seconds = {EVERYBODY: Counter(), MEASURING: Counter()}
        self.all_collected, self.starts = all_collected, []

    def add(self, found: dict[str, dict[str, float]]) -> None:
        """Those of one process."""
        self.starts.append(found[EVERYBODY].pop(START))
        for of, some in found.items():
            self.seconds[of].update(some)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: object) -> None:
        """A process of xdist has ended; one that crashed has no times."""
        self.add(node.workeroutput["durations"])

    def pytest_unconfigure(self) -> None:
        """Entries of files that did not run stay; those of files that are gone do not."""
        known, there = recorded() if FILE.is_file() else {}, {*files(), START}
        if self.all_collected:
            self.seconds[EVERYBODY][START] = max(self.starts)
        merged = {
            of: {
                name: round(seconds, 1)
                for name, seconds in sorted({**known.get(of, {}), **fresh}.items())
                if name in there
            }
            for of, fresh in self.seconds.items()
        }
        FILE.write_text(json.dumps(merged, indent=1) + "\n", "utf-8")

"""What every test shares: figures without a window, and tests that are skipped where tools lack."""

import gc
import importlib.util
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import matplotlib
import pytest

from gemmlab.here import numbas
from gemmlab.here.driver import gpu_status

matplotlib.use("Agg")


@cache
def ptxas() -> Path | None:
    """NVIDIA's assembler, from its Python package or the CUDA Toolkit; None where there is none."""
    if importlib.util.find_spec("cuda") is None or not importlib.util.find_spec("cuda.pathfinder"):
        return None
    from cuda.pathfinder import find_nvidia_binary_utility

    path = find_nvidia_binary_utility("ptxas")
    return None if path is None else Path(path)


@cache
def missing(marker: str) -> str:
    """Why tests with a marker cannot run here; empty if they can."""
    if marker == "gpu":
        return "" if gpu_status().works else f"no GPU in use: {gpu_status().reason}"
    if marker == "numba_cuda":
        return "" if numbas.installed() else "numba-cuda is not installed"
    if not (numbas.installed() or numbas.has_mlir()):
        return "neither numba-cuda nor numba-cuda-mlir is installed"
    return "" if ptxas() else "there is no ptxas"


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """What only helps tests is imported to look for doctests where it has any."""
    helps = collection_path.suffix == ".py" and not collection_path.name.startswith("test_")
    return True if helps and ">>> " not in collection_path.read_text("utf-8") else None


MARKERS = ("gpu", "ptxas", "numba_cuda")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip marked tests where their tools are missing."""
    for item in items:
        for marker in MARKERS:
            if item.get_closest_marker(marker) and missing(marker):
                item.add_marker(pytest.mark.skip(reason=missing(marker)))


def pytest_collection_finish() -> None:
    """Let the garbage collector leave alone what stays for all tests: modules, and the items.

    To look through them again and again takes a tenth of the time of all tests.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many tests would have run with the tools that are missing."""
    skipped = terminalreporter.getreports("skipped")
    for marker in MARKERS:
        # A module that could not be imported for its doctests has no keywords.
        count = sum(marker in getattr(report, "keywords", ()) for report in skipped)
        if count and missing(marker):
            line = f"{count} tests marked {marker} were skipped: {missing(marker)}"
            terminalreporter.write_line(line)
    for line in [*kill_matrix(terminalreporter), *sentences(terminalreporter)]:
        terminalreporter.write_line(line)


def properties(terminalreporter: pytest.TerminalReporter, name: str) -> Iterator[tuple[list, bool]]:
    """What tests have recorded under a name, and whether they passed."""
    for outcome in ("passed", "failed"):
        for report in terminalreporter.getreports(outcome):
            for key, cell in getattr(report, "user_properties", ()):
                if key == name and report.when == "call":
                    yield cell, outcome == "passed"


def sentences(terminalreporter: pytest.TerminalReporter) -> list[str]:
    """How many sentences of chapters have a number, and what holds it."""
    rows = sorted(cell for cell, _ in properties(terminalreporter, "sentences"))
    totals = ["all chapters", *map(sum, zip(*(row[1:] for row in rows), strict=True))]
    return [
        f"sentences with numbers, {name}: {sum(counts)}, of which {counts[0]} computed, "
        f"{counts[1]} in a test beside, {counts[2]} definitions and cases, {counts[3]} uncovered"
        for name, *counts in ([*rows, totals] if rows else [])
    ]


def kill_matrix(terminalreporter: pytest.TerminalReporter) -> list[str]:
    """How many answers to the exercises got the verdict that they should, by exercise and kind."""
    asked, held = Counter(), Counter()
    for cell, passed in properties(terminalreporter, "kill matrix"):
        asked[tuple(cell)] += 1
        held[tuple(cell)] += passed
    kinds = sorted({kind for _, kind in asked})
    lines = []
    for name in sorted({name for name, _ in asked}):
        cells = [f"{held[name, kind]} of {asked[name, kind]} {kind}" for kind in kinds]
        lines.append(f"exercise {name}: {', '.join(cells)}")
    totals = [
        f"{sum(held[c] for c in asked if c[1] == kind)} of "
        f"{sum(asked[c] for c in asked if c[1] == kind)} {kind}"
        for kind in kinds
    ]
    return [*lines, f"all exercises: {', '.join(totals)}"] if lines else []


@pytest.fixture(name="ptxas", scope="session")
def ptxas_path() -> Path:
    """The assembler."""
    return ptxas()


@pytest.fixture
def no_sync(monkeypatch):
    """A disk that is asked to keep what it has and does not: that takes most of a write's time."""
    monkeypatch.setattr("os.fsync", lambda descriptor: None)

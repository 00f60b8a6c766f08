"""What every test shares: figures without a window, and GPU tests only where a GPU works."""

import matplotlib
import pytest

from gemmlab.driver import gpu_status

matplotlib.use("Agg")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the tests marked `gpu` where no GPU works."""
    marked = [item for item in items if item.get_closest_marker("gpu")]
    if marked and not gpu_status().works:
        for item in marked:
            item.add_marker(pytest.mark.skip(reason=f"no GPU in use: {gpu_status().reason}"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many tests a GPU would have added."""
    skipped = [
        report for report in terminalreporter.getreports("skipped") if "gpu" in report.keywords
    ]
    if skipped:
        reason = skipped[0].longrepr[2].removeprefix("Skipped: ")
        terminalreporter.write_line(f"{len(skipped)} tests marked gpu were skipped: {reason}")

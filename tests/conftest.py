"""What every test shares: figures without a window, and GPU tests only where a GPU works."""

import matplotlib
import pytest

matplotlib.use("Agg")


def _why_no_gpu() -> str | None:
    """Why kernels cannot run on a GPU here; None if they can."""
    try:
        from numba import cuda

        cuda.current_context()
    except Exception as error:  # a broken installation raises whatever it likes
        return f"no working CUDA GPU ({type(error).__name__})"
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the tests marked `gpu` where no GPU works."""
    marked = [item for item in items if item.get_closest_marker("gpu")]
    reason = _why_no_gpu() if marked else None
    if reason:
        for item in marked:
            item.add_marker(pytest.mark.skip(reason=reason))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many tests a GPU would have added."""
    skipped = [
        report for report in terminalreporter.getreports("skipped") if "gpu" in report.keywords
    ]
    if skipped:
        reason = skipped[0].longrepr[2].removeprefix("Skipped: ")
        terminalreporter.write_line(f"{len(skipped)} tests marked gpu were skipped: {reason}")

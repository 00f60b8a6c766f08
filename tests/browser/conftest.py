"""One JupyterLab and one Chromium for all browser tests; each notebook is opened and run once."""

from __future__ import annotations

import functools
import http.server
import shutil
import statistics
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from lab import working_copy
from tests.browser.lab_server import ROOT, jupyterlab

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))),
    None,
)
ARGUMENTS = ["--no-sandbox", "--disable-dev-shm-usage"]  # which is too small in a container
RUN_ALL = 240_000  # ms that the cells of one notebook may take in all
# Every code cell has its number again, or one has failed. Cells lose their numbers when they are
# queued. The notebook is asked, and not the page: a collapsed cell shows no number.
ALL_RAN = """() => {
    const cells = [...window.jupyterapp.shell.currentWidget.content.model.cells];
    const code = cells.filter(cell => cell.type === 'code');
    const failed = cell => cell.outputs.toJSON().some(told => told.output_type === 'error');
    return code.some(failed) || code.every(cell => cell.executionCount !== null);
}"""


def load(page, address: str) -> None:
    """Open a notebook, and wait for its kernel."""
    page.goto(address, wait_until="domcontentloaded")
    # The notebook is idle before its kernel is there; the status bar tells of the kernel.
    page.locator("#jp-main-statusbar").get_by_text("| Idle").wait_for(timeout=600_000)


def run_all(page) -> None:
    """Run all cells of the notebook that is open, and wait for them."""
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_text("Run All Cells", exact=True).click()
    page.wait_for_function(ALL_RAN, timeout=RUN_ALL)
    idle = ".jp-Notebook-ExecutionIndicator[data-status='idle']"
    page.wait_for_selector(idle, state="attached", timeout=600_000)
    page.wait_for_timeout(1000)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--screenshots", type=Path, help="folder for screenshots of the notebooks")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The tables of `test_speed`, milliseconds from a key to its picture, and of `test_live`."""
    rows = _told(terminalreporter, "from key to picture")
    if rows:
        terminalreporter.write_line(f"{'from key to picture':<24}{'median':>8}{'worst':>8} ms")
    for name, times in rows:
        told = f"{name:<24}{statistics.median(times):8.0f}{max(times):8.0f}"
        terminalreporter.write_line(f"{told}    of {len(times)} keys")
    chapters = _told(terminalreporter, "in the page")
    if chapters:
        head = "chapter", "cells run", "seconds", "of the first cell", "of the slowest other", "MB"
        terminalreporter.write_line(f"| {' | '.join(head)} |")
        terminalreporter.write_line(f"| --- {'| --: ' * (len(head) - 1)}|")
    for name, *numbers in chapters:
        cells = ("–" if x is None else f"{x:.0f}" for x in numbers)
        terminalreporter.write_line(f"| {name} | {' | '.join(cells)} |")


def _told(terminalreporter: pytest.TerminalReporter, wanted: str) -> list:
    """What tests that have passed tell under a name."""
    return [
        value
        for report in terminalreporter.getreports("passed")
        for key, value in getattr(report, "user_properties", ())
        if key == wanted and report.when == "call"
    ]


@pytest.fixture(scope="session")
def screenshots(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = request.config.getoption("--screenshots") or tmp_path_factory.mktemp("screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    print(f"\nscreenshots: {folder}")
    return folder


SITE = ROOT / "book" / "_build" / "html"


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_) -> None:
        """Say nothing of each request."""


@pytest.fixture(scope="session")
def site() -> Iterator[str]:
    """The address of the built site, served from this machine."""
    if not (SITE / "index.html").is_file():
        pytest.skip("the site is not built: python3 run.py book")
    handler = functools.partial(Quiet, directory=SITE)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="session")
def context() -> Iterator:
    if CHROMIUM is None:
        pytest.skip("no Chromium is installed: neither chromium nor google-chrome is on the PATH")
    sync_playwright = pytest.importorskip("playwright.sync_api").sync_playwright
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM,
            args=ARGUMENTS,
            ignore_default_args=["--hide-scrollbars"],  # most learners have them, 15 pixels wide
        )
        yield browser.new_context(viewport={"width": 1400, "height": 1000})
        browser.close()


@pytest.fixture(scope="session")
def strangers(context) -> list[str]:
    """Requests that went to another machine, as they are made."""
    seen: list[str] = []

    def note(request) -> None:
        url = urlsplit(request.url)
        if url.scheme not in ("data", "blob") and url.hostname != "127.0.0.1":
            seen.append(request.url)

    context.on("request", note)
    return seen


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the server keeps its settings and its log."""
    return tmp_path_factory.mktemp("jupyter")


@pytest.fixture(scope="session")
def copies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copies of the notebooks: what the browser saves does not reach the repository."""
    folder = tmp_path_factory.mktemp("notebooks")
    working_copy.update(ROOT / "notebooks", folder)
    return folder


@pytest.fixture(scope="session")
def server(copies: Path, home: Path) -> Iterator[str]:
    """The address of JupyterLab on the copies."""
    with jupyterlab(copies, home) as url:
        yield url


@pytest.fixture(scope="session")
def opened(context, strangers, server: str, screenshots: Path) -> Callable:
    """A function of a notebook's name: its page, with every cell run."""
    pages: dict = {}

    def open_notebook(name: str):
        if name not in pages:
            page = pages[name] = context.new_page()
            load(page, server.format(path=name))
            run_all(page)
            page.screenshot(path=screenshots / f"{Path(name).stem}.png")
        return pages[name]

    return open_notebook

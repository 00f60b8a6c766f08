"""Explorers that come alive in the pages of the site: `python3 run.py book` comes first."""

from __future__ import annotations

import functools
import gzip
import http.server
import os
import re
import threading
import time
from itertools import cycle, islice

import pytest

from tests.browser.conftest import ARGUMENTS, CHROMIUM, SITE, Quiet

pytestmark = pytest.mark.browser

FILMS = ".gemmlab-film[data-expression]"
START = 180_000  # ms until the first explorer of a page is there
KEYS = int(os.environ.get("KEYS", "4"))  # that are pressed on each explorer
LIVE = "film => film.querySelector('.film-live .gemmlab-explorer img')"
SHOWN = """film => {
    const live = film.querySelector('.film-live');
    return live.textContent + [...live.querySelectorAll('img')].map(image => image.src).join();
}"""
# What can be moved and is: keys go to the first slider, or to the first list where none is.
MOVED = ".film-live [role=slider], .film-live select"


def pages() -> list[str]:
    """The chapters with explorers that come alive, as the built site has them."""
    found = (SITE / "notebooks").glob("*.html")
    return sorted(page.stem for page in found if "data-expression" in page.read_text("utf-8"))


@pytest.fixture
def chapter(context, site):
    """A function of a chapter's name: its page, which asks no other machine for anything."""
    if not (SITE / "lite" / "page" / "gemmlab.bin").is_file():
        pytest.skip("no explorer comes alive: python3 run.py book says what is missing")
    opened, strangers, lost = [], [], []

    def go(name: str):
        page = context.new_page()
        opened.append(page)
        page.on("request", lambda asked: strangers.append(asked.url)
                if not asked.url.startswith((site, "data:", "blob:")) else None)  # fmt: skip
        page.on("response", lambda told: lost.append(told.url) if told.status >= 400 else None)
        page.on("pageerror", lambda error: lost.append(str(error)))
        page.goto(f"{site}notebooks/{name}.html")
        return page

    yield go
    for page in opened:
        page.close()
    assert (strangers, lost) == ([], [])


def wait_until_live(page, film) -> None:
    """Wait for an explorer; an assertion with what the page says where it cannot come."""
    there = f"film => ({LIVE})(film) || /cannot/.test(film.querySelector('.film-note').innerText)"
    page.wait_for_function(there, arg=film.element_handle(), timeout=START)
    assert film.evaluate(f"film => !!({LIVE})(film)"), film.locator(".film-note").inner_text()


def wait_until_idle(page, film) -> None:
    film.get_by_text("Live: what you move").wait_for(timeout=START)


@pytest.mark.parametrize("name", pages())
def test_each_explorer_of_a_chapter_comes_alive_and_answers(
    chapter, screenshots, record_property, name: str
):
    page = chapter(name)
    films = page.locator(FILMS)
    for i in range(films.count()):
        film = films.nth(i)
        film.scroll_into_view_if_needed()
        began = time.perf_counter()
        film.get_by_role("button", name="Make it live").click()
        wait_until_live(page, film)
        first = time.perf_counter() - began
        wait_until_idle(page, film)
        moved = film.locator(MOVED)
        enabled = [moved.nth(k) for k in range(moved.count()) if moved.nth(k).is_enabled()]
        times = []
        for control in enabled:
            control.focus()
            for key in islice(cycle(("ArrowRight", "ArrowLeft", "ArrowDown", "ArrowUp")), KEYS):
                before = film.evaluate(SHOWN)
                pressed = time.perf_counter()
                page.keyboard.press(key)
                changed = f"([film, had]) => ({SHOWN})(film) !== had"
                told = [film.element_handle(), before]
                try:
                    page.wait_for_function(changed, arg=told, polling=5, timeout=2_000)
                except Exception as error:  # the end of a slider, or a list that ends
                    assert "Timeout" in str(error)  # noqa: PT017
                else:
                    times.append(1000 * (time.perf_counter() - pressed))
                wait_until_idle(page, film)
        assert times, f"no control of {film.get_attribute('data-expression')} changes anything"
        record_property("from key to picture", (film.get_attribute("aria-label"), times))
        record_property("first live picture [s]", (name, first))
        film.screenshot(path=screenshots / f"alive_{name}_{i}.png")


def test_what_is_moved_in_a_film_goes_on_in_its_explorer(chapter):
    page = chapter("00_start_here")
    film = page.locator(FILMS)
    control = film.locator("label", has_text="stride").locator("input")
    control.focus()
    page.keyboard.press("ArrowRight")
    # The film's own picture; a preview has the last stride alone after the first.
    moved = int(film.locator("label", has_text="stride").locator("output").inner_text())
    film.get_by_text(f"Lane i loads element {moved}·i").first.wait_for()
    wait_until_live(page, film)
    wait_until_idle(page, film)
    assert not control.is_visible()
    focused = page.evaluate("document.activeElement.getAttribute('aria-label')")
    assert re.match("stride", focused or "")
    key, further = ("ArrowRight", moved + 1) if moved == 2 else ("ArrowLeft", moved - 1)
    page.keyboard.press(key)
    film.locator(".film-live").get_by_text(f"Lane i loads element {further}·i").wait_for()


def test_what_takes_too_long_is_stopped_and_the_film_is_back(chapter):
    page = chapter("06_register_tiles")
    film = page.locator(FILMS).first
    film.get_by_role("button", name="Make it live").click()
    wait_until_live(page, film)
    left_out = film.locator(".film-live .widget-dropdown", has_text="leave out").locator("select")
    left_out.select_option(index=1)  # no such simulation is recorded
    film.get_by_text("At work").wait_for()
    film.locator(".film-note").get_by_role("button", name="Stop").click()
    assert film.locator(".film-controls").is_visible()
    film.get_by_role("button", name="Make it live").click()
    wait_until_live(page, film)


LINE = 20e6 / 8  # bytes per second: a slow line at home
PACKED = (".html", ".js", ".mjs", ".css", ".json", ".wasm", ".svg")  # by any server of pages


class Slow(Quiet):
    """A server of pages at the end of a slow line, which all requests share."""

    sent, due, one = 0, 0.0, threading.Lock()

    def do_GET(self) -> None:
        """Answer with a file, packed as servers do, at the speed of the line."""
        path = self.translate_path(self.path)
        path = os.path.join(path, "index.html") if os.path.isdir(path) else path
        if not os.path.isfile(path):
            self.send_error(404)
            return
        tag = f'"{os.stat(path).st_mtime_ns}"'
        if self.headers.get("If-None-Match") == tag:
            self.send_response(304)
            self.end_headers()
            return
        data = read(path)
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(path))
        self.send_header("Content-Length", str(len(data)))
        self.send_header("ETag", tag)
        self.send_header("Cache-Control", "max-age=600")  # as GitHub Pages does
        if path.endswith(PACKED):
            self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        for at in range(0, len(data), 1 << 14):
            part = data[at : at + (1 << 14)]
            with Slow.one:
                Slow.sent += len(part)
                Slow.due = max(Slow.due, time.monotonic()) + len(part) / LINE
                wait = Slow.due - time.monotonic()
            time.sleep(max(0.0, wait))
            self.wfile.write(part)


@functools.cache
def read(path: str) -> bytes:
    """What goes over the line for a file."""
    with open(path, "rb") as file:
        data = file.read()
    return gzip.compress(data, 6) if path.endswith(PACKED) else data


def test_the_first_live_picture_over_a_slow_line(context, site, record_property, tmp_path):
    """Its seconds are told and judge nothing; that it tells how far it is, and its bytes, do."""
    if not (SITE / "lite" / "page" / "gemmlab.bin").is_file():
        pytest.skip("no explorer comes alive: python3 run.py book says what is missing")
    for path in [*SITE.glob("lite/static/pyodide/*"), *SITE.glob("lite/page/*.*")]:
        read(str(path))  # packed before anybody asks
    # A profile on the disk, as a reader's: one in memory keeps no large file.
    own = context.browser.browser_type.launch_persistent_context(
        tmp_path, executable_path=CHROMIUM, args=ARGUMENTS, viewport={"width": 1366, "height": 768}
    )
    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Slow, directory=SITE)
    ) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for visit in ("cold", "warm"):
            page = own.new_page()
            page.goto(f"http://127.0.0.1:{server.server_port}/notebooks/00_start_here.html")
            page.wait_for_load_state("networkidle")
            film = page.locator(FILMS)
            film.scroll_into_view_if_needed()
            before, began = Slow.sent, time.perf_counter()
            film.get_by_role("button", name="Make it live").click()
            film.get_by_text("Python is fetched").wait_for()
            assert film.locator("progress").is_visible()
            wait_until_live(page, film)
            seconds, fetched = time.perf_counter() - began, Slow.sent - before
            told = visit, round(seconds, 1), f"{fetched / 1e6:.1f} MB"
            record_property("first live picture, 20 Mbit/s", told)
            print("first live picture, 20 Mbit/s:", *told)
            assert fetched < 60e6
            page.close()
        server.shutdown()
    own.close()

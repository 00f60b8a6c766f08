"""Where the live site's parts come from, and what is said where one cannot be had."""

import json
import re
import urllib.request
import zipfile

import pytest

import run
from book import film, live, pack
from tests.support.paths import ROOT


@pytest.fixture
def nothing_reached(monkeypatch):
    """No network; how often it was asked."""
    asked = []

    def refuse(url, timeout):
        asked.append(url)
        raise OSError("no route to host")

    monkeypatch.setattr(urllib.request, "urlopen", refuse)
    monkeypatch.setattr(live, "UNREACHED", [])
    return asked


def test_without_a_network_one_line_says_what_is_missing(nothing_reached, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["live", "--fetch"])
    monkeypatch.setattr(live, "KEPT", live.ROOT / "nowhere")
    assert live.main() == 1
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 1
    place = live.DISTRIBUTION.format(live.PYODIDE)
    assert told[0].startswith(f"no live site: neither {place} (no route to host) nor ")
    assert "{" not in told[0]
    assert len(nothing_reached) == 2  # the distribution once, and a registry of npm


def test_a_file_with_another_hash_is_refused_and_not_kept(monkeypatch, tmp_path):
    monkeypatch.setattr(live, "distributed", lambda name: b"something else")
    with pytest.raises(live.MissingError, match="another hash than is pinned"):
        live.runtime(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_wheels_become_entries_of_a_lock_file(tmp_path):
    wheel = tmp_path / "Some_Thing-1.2-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as files:
        files.writestr("some_thing/__init__.py", "")
        files.writestr("other.py", "")
        needs = ("numpy>=2", "absent", "ipython; extra == 'test'")
        text = "".join(f"Requires-Dist: {need}\n" for need in needs)
        files.writestr("some_thing-1.2.dist-info/METADATA", f"Name: Some_Thing\n{text}")
    made = live.entries([wheel], ["numpy", "ipython"])
    assert made["some-thing"]["imports"] == ["other", "some_thing"]
    assert made["some-thing"]["depends"] == ["numpy"]
    assert made["some-thing"]["sha256"] == live.sha256(wheel.read_bytes())
    assert json.dumps(made)


def test_each_pure_package_is_pinned_by_a_hash():
    lines = live.PURE.read_text("utf-8").splitlines()[1:]
    assert all("==" in line for line in lines[::2])
    assert all("--hash=sha256:" in line for line in lines[1::2])


def test_the_pack_leaves_out_what_explorers_never_import():
    kept = ["numpy/_core/multiarray.py", "numpy/testing/__init__.py", "gemmlab/simt/launch.py"]
    kept += ["matplotlib/backends/backend_agg.py", "PIL/PngImagePlugin.py", "PIL/Image.py"]
    kept += ["matplotlib/mpl-data/fonts/ttf/DejaVuSans.ttf", "gemmlab/recorded/h200/outcomes.json"]
    gone = ["numpy/_core/tests/test_api.py", "numpy/__init__.pyi", "gemmlab/course/exercises.py"]
    gone += ["matplotlib/backends/backend_svg.py", "PIL/GifImagePlugin.py"]
    gone += ["matplotlib/mpl-data/fonts/ttf/STIXGeneral.ttf", "six-1.17.0.dist-info/METADATA"]
    assert [name for name in kept if pack.LEFT_OUT.search(f"/{name}")] == []
    assert [name for name in gone if not pack.LEFT_OUT.search(f"/{name}")] == []


def test_the_pack_holds_the_files_of_wheels_that_stay(tmp_path):
    wheel = tmp_path / "six-1.17.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as files:
        for name in ("six.py", "six.pyi", "six/tests/test.py", "six-1.17.0.dist-info/METADATA"):
            files.writestr(name, "")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "of before").touch()
    pack.unpacked([wheel], tmp_path / "in")
    found = (tmp_path / "in").rglob("*")
    assert [file.name for file in found if file.is_file()] == ["six.py"]


def test_each_explorer_of_a_chapter_can_be_made_anew_in_a_page():
    left = []
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        for cell in json.loads(path.read_text("utf-8"))["cells"]:
            source = "".join(cell["source"])
            last = (source.splitlines() or [""])[-1]
            if cell["cell_type"] == "code" and re.match(r"explorers\.\w+\(", last):
                made = film.expression(source)
                if "Fragments" not in last and not made:  # which answers without Python
                    left.append((path.name, last))
    assert left == []


def test_tests_in_a_browser_say_in_one_line_what_is_missing(monkeypatch, tmp_path):
    calls, lacking = [], run.SetupError
    monkeypatch.setattr(run, "ROOT", tmp_path)
    monkeypatch.setattr(run, "call", lambda *command: calls.append(command) or 0)
    monkeypatch.setattr(run, "set_up", calls.append)
    monkeypatch.setenv("LIVE_CHAPTERS", "00_start_here")
    monkeypatch.setattr(run.shutil, "which", lambda name: None)
    with pytest.raises(lacking, match=r"^no Chromium or Chrome is on the PATH"):
        run.test(["--browser"])
    monkeypatch.setattr(run.shutil, "which", lambda name: name)
    with pytest.raises(lacking, match=r"^there is no live site; `python3 run.py book` makes it"):
        run.test(["--browser"])
    lite = tmp_path / "book" / "_build" / "html" / "lite"
    lite.mkdir(parents=True)
    (lite / "index.html").touch()
    assert run.test(["-x", "--browser"]) == 0
    assert calls == ["browser", ("-m", "pytest", "tests/browser", "-x")]


@pytest.mark.parametrize("works", [{"uv", "pip"}, {"pip"}, set()])
def test_jupyterlite_has_an_environment_of_its_own_by_uv_or_by_pip(monkeypatch, tmp_path, works):
    asked = []

    def told(command, *what, env=None):
        asked.append((command[2], what))
        if command[2] not in works:
            raise live.MissingError(command[2])

    monkeypatch.setattr(live, "KEPT", tmp_path)
    monkeypatch.setattr(live, "told", told)
    if not works:
        with pytest.raises(live.MissingError, match="^pip$"):
            live.environment()
    folder = tmp_path / f"env-{live.sha256(live.BUILDERS.read_bytes())[:16]}"
    if works:
        assert live.environment() == live.environment() == folder  # made once
    assert (folder / "whole").is_file() == bool(works)
    assert [tool for tool, _ in asked] == (["uv"] if "uv" in works else ["uv", "pip"])
    for _, what in asked:
        assert {"--require-hashes", live.python_of(folder), str(live.BUILDERS)} <= set(what)

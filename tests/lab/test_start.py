"""How the course is opened in JupyterLab, without starting it."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from lab import start
from tests.support.paths import ROOT


def test_it_listens_on_loopback_and_opens_the_first_page():
    arguments = start.arguments(ROOT / "work", start.START, browser=True, root=False)
    assert "--ServerApp.ip=127.0.0.1" in arguments
    assert f"--ServerApp.root_dir={ROOT / 'work'}" in arguments
    assert "--LabApp.default_url=/lab/tree/00_start_here.ipynb" in arguments
    assert not {"--allow-root", "--no-browser"} & set(arguments)
    assert not any("token" in argument.lower() for argument in arguments)


def test_as_root_and_without_a_browser():
    arguments = start.arguments(ROOT / "work", "", browser=False, root=True)
    assert {"--allow-root", "--no-browser"} <= set(arguments)
    assert not any("default_url" in argument for argument in arguments)


def test_each_clone_has_its_own_tabs_and_kernels_do_not_warn():
    arguments = start.arguments(ROOT / "work", "", browser=True, root=False)
    assert f"--LabApp.workspaces_dir={ROOT / 'work' / '.lab'}" in arguments
    from jupyter_client.manager import KernelManager

    (told,) = (a.partition("=")[2] for a in arguments if a.startswith("--KernelManager.transport_"))
    assert KernelManager(transport_encryption=told).transport_encryption == "auto"


def test_the_file_list_keeps_its_width_for_names():
    with open(start.SETTINGS / "overrides.json", encoding="utf-8") as file:
        told = json.load(file)["@jupyterlab/filebrowser-extension:browser"]
    assert told == {"showLastModifiedColumn": False}


def test_the_first_page_is_a_chapter():
    assert (start.CHAPTERS / start.START).is_file()


def test_nothing_is_asked_of_jupyter_s_site():
    (settings,) = (
        argument.partition("=")[2]
        for argument in start.arguments(ROOT, "", browser=True, root=False)
        if argument.startswith("--LabApp.app_settings_dir=")
    )
    with open(f"{settings}/overrides.json", encoding="utf-8") as file:
        told = json.load(file)["@jupyterlab/apputils-extension:notification"]
    assert told == {"fetchNews": "false", "checkForUpdates": False}


def test_git_ignores_the_working_copy():
    ask = ["git", "check-ignore", "-q", "work/00_start_here.ipynb"]
    assert not (ROOT / ".git").exists() or subprocess.run(ask, cwd=ROOT).returncode == 0


def test_a_terminal_without_display_has_no_browser(monkeypatch):
    monkeypatch.setattr(start.webbrowser, "get", lambda: object())
    assert not start.has_browser("linux", {})
    assert start.has_browser("linux", {"DISPLAY": ":0"})
    assert start.has_browser("win32", {})

    def none():
        raise start.webbrowser.Error

    monkeypatch.setattr(start.webbrowser, "get", none)
    assert not start.has_browser("darwin", {})


def test_an_unknown_language_is_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(start, "WORK", tmp_path / "work")
    assert start.main(["--language", "tlh"]) == 2
    assert capsys.readouterr().err.splitlines() == [
        "gemmlab: there is no translation into 'tlh'; there are: zh_CN"
    ]


def test_a_working_copy_that_cannot_be_written_is_one_line(tmp_path, monkeypatch, capsys):
    (tmp_path / "work").touch()  # a file where the folder should be
    monkeypatch.setattr(start, "WORK", tmp_path / "work")
    assert start.main([]) == 1
    (told,) = capsys.readouterr().err.splitlines()
    assert str(tmp_path / "work") in told


@pytest.mark.skipif(os.name == "nt", reason="Ctrl-C cannot be sent to a process of its own")
@pytest.mark.parametrize("after", [0.3, 1.0])
def test_an_early_interrupt_is_one_line(tmp_path, after):
    """Ctrl-C while JupyterLab is being imported: no traceback."""
    (tmp_path / "lab").symlink_to(ROOT / "lab")
    (tmp_path / "jupyterlab").mkdir()
    (tmp_path / "jupyterlab" / "labapp.py").write_text("import time\ntime.sleep(600)\n")
    script = (
        "import lab.start, runpy, pathlib;"
        f"lab.start.WORK = pathlib.Path({str(tmp_path / 'work')!r});"
        "runpy.run_module('lab', run_name='__main__')"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    )
    while not (tmp_path / "work" / ".laid.json").exists() and process.poll() is None:
        time.sleep(0.02)
    time.sleep(after)
    process.send_signal(signal.SIGINT)
    told = process.communicate(timeout=600)[1]
    assert process.returncode == 130
    assert "Traceback" not in told
    assert told.splitlines()[-1] == "gemmlab: interrupted before JupyterLab had started"

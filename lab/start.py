"""How JupyterLab is started: on a working copy, for this machine alone, asking nothing outside.

In a clone of the repository the chapters lie beside this package, and the copies beside both. An
installed gemmlab has this package and the chapters inside, and lays the copies in the learner's
home.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import webbrowser
from pathlib import Path

from . import translated, working_copy

HERE = Path(__file__).resolve().parent
INSTALLED = (HERE / "notebooks").is_dir()  # as pyproject.toml packs them
CHAPTERS = (HERE if INSTALLED else HERE.parent) / "notebooks"
# What is saved there is the learner's; in a clone git ignores it.
WORK = Path.home() / "gemmlab-course" if INSTALLED else HERE.parent / "work"
SETTINGS = Path(__file__).with_name("settings")
WORKSPACES = ".lab"  # in the folder that is served: which tabs are open, and how wide the bars are
START = "00_start_here.ipynb"


def main(extra: list[str]) -> int:
    """Bring the working copy up to date and serve it until Ctrl-C.

    With `--language` it is a copy of its own, of chapters that are translated as far as they are.
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--language")
    given, extra = parser.parse_known_args(extra)
    work = WORK / given.language if given.language else WORK
    first_time = not (work / WORKSPACES).exists()
    try:
        lines = lay(work, given.language)
    except ValueError as error:
        say(str(error))
        return 2
    except OSError as error:
        say(f"the chapters cannot be copied to {work}: {error.strerror or error}")
        return 1
    for line in lines:
        say(line)
    browser = has_browser(sys.platform, dict(os.environ))
    hint = "" if browser else "; open the URL it prints"
    say(f"starting JupyterLab on your copies in {work}; Ctrl-C ends it{hint}")
    own = arguments(work, START if first_time else "", browser, is_root())

    from jupyterlab.labapp import LabApp

    if not (sys.stdin and sys.stdin.isatty()):  # at a terminal alone has it a handler of its own
        signal.signal(signal.SIGINT, signal.default_int_handler)
    LabApp.launch_instance([*own, *extra])
    return 0


def lay(work: Path, language: str | None) -> list[str]:
    """Bring a working copy up to date, in English or another language; lines to the learner."""
    with tempfile.TemporaryDirectory() as scratch:
        chapters = CHAPTERS
        if language:
            chapters = Path(scratch)
            translated.lay(CHAPTERS, chapters, language)
        lines = working_copy.update(chapters, work)
        working_copy.trust(chapters, work)
    return lines


def say(text: str) -> None:
    """One line to the user, on stderr."""
    print(f"gemmlab: {text}", file=sys.stderr, flush=True)


def is_root() -> bool:
    """Whether the system's administrator runs this, whom JupyterLab refuses unless told."""
    return hasattr(os, "geteuid") and os.geteuid() == 0


def has_browser(platform: str, env: dict[str, str]) -> bool:
    """Whether a window can open here; a text browser in the terminal is not one."""
    if platform not in ("win32", "darwin") and not any(
        env.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    ):
        return False
    try:
        return webbrowser.get() is not None
    except webbrowser.Error:
        return False


def arguments(folder: Path, first: str, browser: bool, root: bool) -> list[str]:
    """JupyterLab's arguments: a folder with its own tabs, loopback address, its own token, no news.

    first : the notebook to open; where it is empty, JupyterLab opens what was open last
    """
    return [
        "--ServerApp.ip=127.0.0.1",
        "--ServerApp.answer_yes=True",  # one Ctrl-C ends it
        "--log-level=WARN",
        f"--ServerApp.root_dir={folder}",
        f"--LabApp.app_settings_dir={SETTINGS}",
        f"--LabApp.workspaces_dir={folder / WORKSPACES}",  # else all clones share their tabs
        "--ServerApp.tornado_settings={'ws_ping_interval': 0}",  # it would warn of its own timeout
        "--KernelManager.transport_encryption=auto",  # else each kernel warns of eavesdropping
        *([f"--LabApp.default_url=/lab/tree/{first}"] if first else []),
        *([] if browser else ["--no-browser"]),
        *(["--allow-root"] if root else []),
    ]

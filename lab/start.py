"""How JupyterLab is started: on a working copy, for this machine alone, asking nothing outside.

In a clone of the repository the chapters lie beside this package, and the copies beside both. An
installed gemmlab has this package and the chapters inside, and lays the copies in the learner's
home.
"""

from __future__ import annotations

import os
import signal
import sys
import webbrowser
from pathlib import Path

from . import working_copy

HERE = Path(__file__).resolve().parent
INSTALLED = (HERE / "notebooks").is_dir()  # as pyproject.toml packs them
CHAPTERS = (HERE if INSTALLED else HERE.parent) / "notebooks"
# What is saved there is the learner's; in a clone git ignores it.
WORK = Path.home() / "gemmlab-course" if INSTALLED else HERE.parent / "work"
SETTINGS = Path(__file__).with_name("settings")
WORKSPACES = ".lab"  # in the folder that is served: which tabs are open, and how wide the bars are
START = "00_start_here.ipynb"


def main(extra: list[str]) -> int:
    """Bring the working copy up to date and serve it until Ctrl-C."""
    first_time = not (WORK / WORKSPACES).exists()
    try:
        lines = working_copy.update(CHAPTERS, WORK)
        working_copy.trust(CHAPTERS, WORK)
    except OSError as error:
        say(f"the chapters cannot be copied to {WORK}: {error.strerror or error}")
        return 1
    for line in lines:
        say(line)
    browser = has_browser(sys.platform, dict(os.environ))
    hint = "" if browser else "; open the URL it prints"
    say(f"starting JupyterLab on your copies in {WORK}; Ctrl-C ends it{hint}")
    own = arguments(WORK, START if first_time else "", browser, is_root())

    from jupyterlab.labapp import LabApp

    if not (sys.stdin and sys.stdin.isatty()):  # at a terminal alone has it a handler of its own
        signal.signal(signal.SIGINT, signal.default_int_handler)
    LabApp.launch_instance([*own, *extra])
    return 0


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

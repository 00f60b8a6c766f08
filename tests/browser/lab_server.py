"""A JupyterLab server of its own for the browser tests: loopback, token, nothing of the user's."""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lab import start

ROOT = Path(__file__).resolve().parents[2]

# Every cell is in the page even where it is scrolled away; the rest is as in `run.py lab`.
SETTINGS = {
    "@jupyterlab/notebook-extension/tracker.jupyterlab-settings": {"windowingMode": "none"},
}


@contextmanager
def jupyterlab(folder: Path, home: Path) -> Iterator[str]:
    """Serve `folder`, settings and logs in `home`; gives the URL with "{path}" for a notebook."""
    for name, content in SETTINGS.items():
        file = home / "lab" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(content), "utf-8")
    token, port = secrets.token_hex(16), _free_port()
    places = {
        "JUPYTER_CONFIG_DIR": "config",
        "JUPYTER_DATA_DIR": "data",
        "JUPYTER_RUNTIME_DIR": "runtime",
        "JUPYTERLAB_SETTINGS_DIR": "lab",
        "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
        "IPYTHONDIR": "ipython",
    }
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    env = {**os.environ, **{k: str(home / v) for k, v in places.items()}, "PYTHONPATH": path}
    trust = (
        "import pathlib, sys; from lab.working_copy import trust; "
        "trust(*map(pathlib.Path, sys.argv[1:]))"
    )
    subprocess.run(
        [sys.executable, "-c", trust, str(start.CHAPTERS), str(folder)], env=env, check=True
    )
    command = [
        *(sys.executable, "-m", "jupyterlab"),
        *start.arguments(folder, first="", browser=False, root=start.is_root()),
        *(f"--ServerApp.port={port}", "--ServerApp.port_retries=0"),
        f"--IdentityProvider.token={token}",
        "--LabApp.expose_app_in_browser=True",  # as window.jupyterapp: the tests ask the notebook
    ]
    with open(home / "server.log", "wb") as log:
        server = subprocess.Popen(command, env=env, stdout=log, stderr=subprocess.STDOUT)
    try:
        _wait(f"http://127.0.0.1:{port}/api/status?token={token}", server, home / "server.log")
        yield f"http://127.0.0.1:{port}/lab/tree/{{path}}?token={token}&reset"
    finally:
        server.terminate()
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _wait(url: str, server: subprocess.Popen, log: Path) -> None:
    """Wait until the server answers; RuntimeError with its log where it does not."""
    end = time.monotonic() + 600
    while time.monotonic() < end and server.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    raise RuntimeError(f"JupyterLab did not start:\n{log.read_text('utf-8', 'replace')[-3000:]}")

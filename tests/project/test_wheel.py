"""The installable package: what is in it, and that it opens the course where there is no clone.

With packages from an index it is tried in the Pythons that GEMMLAB_PYTHONS names, two minutes each:
GEMMLAB_PYTHONS="python3.11 python3.14" run.py test tests/project/test_wheel.py -n0
"""

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import pytest

from tests.course.grading import notebooks
from tests.support.paths import ROOT

pytestmark = pytest.mark.measuring
KERNEL = """
import numpy as np
from numba import cuda

@cuda.jit
def double(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] *= 2

x = np.ones(100)
double[1, 128](x)
assert x.sum() == 200
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel of this tree, or the one that a release has built."""
    if os.environ.get("GEMMLAB_WHEEL"):
        return Path(shutil.copy(os.environ["GEMMLAB_WHEEL"], tmp_path_factory.mktemp("wheel")))
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
    command += ["--no-build-isolation", "--wheel-dir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, cwd=folder)
    (wheel,) = folder.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def installed(wheel):
    """A folder with the package as an installation has it, and its files."""
    with zipfile.ZipFile(wheel) as files:
        files.extractall(wheel.parent / "site")
        return wheel.parent / "site", files.namelist()


def run(installed, tmp_path, *command: str) -> subprocess.CompletedProcess:
    """Run Python with the installed package alone, and a home of its own."""
    env = os.environ | {"PYTHONPATH": str(installed[0]), "HOME": str(tmp_path)}
    return subprocess.run(
        [sys.executable, *command], cwd=tmp_path, env=env, capture_output=True, text=True
    )


def test_the_wheel_has_the_chapters_and_nothing_that_only_a_clone_needs(installed):
    names = installed[1]
    chapters = {f"gemmlab/lab/notebooks/{path.name}" for path in ROOT.glob("notebooks/*.ipynb")}
    assert chapters <= set(names)
    assert "gemmlab/lab/locale/zh_CN/LC_MESSAGES/gemmlab.po" in names
    tops = {name.split("/")[0] for name in names}
    assert tops == {"gemmlab", next(top for top in tops if top.endswith(".dist-info"))}
    assert not [name for name in names if "test" in name.rpartition("/")[2] or ".pyc" in name]


def test_the_installed_lab_lays_its_chapters_in_the_learners_home(installed, tmp_path):
    program = (
        "import gemmlab, gemmlab.lab.start as start\n"
        "from gemmlab.lab import working_copy\n"
        "print(gemmlab.__file__, start.INSTALLED)\n"
        "working_copy.update(start.CHAPTERS, start.WORK)"
    )
    done = run(installed, tmp_path, "-c", program)
    assert done.stdout.split() == [str(installed[0] / "gemmlab" / "__init__.py"), "True"]
    laid = sorted(path.name for path in (tmp_path / "gemmlab-course").glob("*.ipynb"))
    assert laid == sorted(path.name for path in ROOT.glob("notebooks/*.ipynb"))


def test_the_installed_lab_starts(installed, tmp_path):
    done = run(installed, tmp_path, "-m", "gemmlab", "lab", "--version")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()[0].isdigit()


def test_the_installed_package_simulates_a_program(installed, tmp_path):
    (tmp_path / "program.py").write_text(KERNEL, "utf-8")
    done = run(installed, tmp_path, "-m", "gemmlab", "simulate", "program.py")
    assert done.returncode == 0, done.stderr
    assert "double" in done.stderr


# --------------------------------------------------------------------------------- in each Python

PYTHONS = os.environ.get("GEMMLAB_PYTHONS", "").split()
CHAPTER = "04_shared_memory_tiling.ipynb"


@pytest.mark.parametrize("python", PYTHONS or [None])
def test_a_clean_environment_runs_the_course(python, wheel, tmp_path, capsys):
    if not python:
        pytest.skip("GEMMLAB_PYTHONS names no Python in which packages may be installed")
    tools = tmp_path / "venv" / "bin"
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    env |= {"HOME": str(tmp_path), "PATH": f"{tools}:/usr/bin:/bin"}
    took = {}

    def tried(what, *command):
        began = time.monotonic()
        done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
        assert done.returncode == 0, f"{what}: {done.stdout}{done.stderr}"
        took[what] = time.monotonic() - began
        return done.stdout + done.stderr

    (tmp_path / "program.py").write_text(KERNEL, "utf-8")
    names = [f"04.{number}" for number in range(1, 6)]
    solved = notebooks.notebook("04", {name: notebooks.solution(name) for name in names})
    notebooks.write(tmp_path / "class", "alice", solved)
    tried("venv", shutil.which(python), "-m", "venv", "--without-pip", tools.parent)
    pip = [sys.executable, "-m", "pip", "--python", tools / "python", "install", "--quiet"]
    tried("install", *pip, f"{wheel}[lab]")
    version = tried("version", tools / "python", "--version").split()[1]
    said = tried("doctor", tools / "gemmlab", "doctor")
    assert ["ok", "Python", version] in [line.split() for line in said.splitlines()]
    assert said.endswith("Everything works.\n")
    assert "double" in tried("simulate", tools / "gemmlab", "simulate", "program.py")
    graded = tried("grade", tools / "gemmlab", "grade", "class", "--seed", "ours")
    assert "5 of 5" in graded
    (walls,) = [line for line in graded.splitlines() if line.startswith("Walls: ")]
    began = time.monotonic()
    opens(tools, tmp_path, env)
    took["lab"] = time.monotonic() - began
    tried("chapter", tools / "jupyter", "execute", tmp_path / "gemmlab-course" / CHAPTER)
    with capsys.disabled():
        each = ", ".join(f"{what} {seconds:.0f} s" for what, seconds in took.items())
        print(f"\nPython {version}: {each}\n{walls}")


def opens(tools, home, env):
    """Start the lab, open a chapter and a kernel over HTTP, and end it as Ctrl-C does."""
    with subprocess.Popen(
        [tools / "gemmlab", "lab", "--no-browser", "--ServerApp.port_retries=50"],
        cwd=home, env=env, stderr=subprocess.PIPE, text=True,
    ) as lab:  # fmt: skip
        try:
            address, token = next(
                found.groups()
                for line in lab.stderr
                if (found := re.search(r"(http://127.0.0.1:\d+/)lab\S*\?token=(\w+)", line))
            )
            listening(address)
            headers = {"Authorization": f"token {token}"}
            with urlopen(Request(f"{address}api/contents/{CHAPTER}", headers=headers)) as answer:
                cells = json.load(answer)["content"]["cells"]
            assert len(cells) == len(json.loads(notebooks.chapter("04"))["cells"])
            kernel = Request(f"{address}api/kernels", b"{}", headers, method="POST")
            with urlopen(kernel) as answer:
                assert json.load(answer)["name"] == "python3"
            with urlopen(Request(f"{address}lab/tree/{CHAPTER}", headers=headers)) as answer:
                assert b"jupyter-config-data" in answer.read()
        finally:
            lab.send_signal(signal.SIGINT)
            _, rest = lab.communicate(timeout=60)
    assert lab.returncode == 0, rest


def listening(address):
    """Wait until a server can be reached, which prints its address a moment before."""
    at = urlsplit(address)
    for _ in range(100):
        with contextlib.suppress(ConnectionRefusedError):
            socket.create_connection((at.hostname, at.port)).close()
            return
        time.sleep(0.1)
    raise AssertionError(f"nothing listens at {address}")

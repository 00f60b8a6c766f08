"""What run.py installs with, what it says where that fails, and which packages a GPU asks for."""

import sys

import pytest

import run

# -------------------------------------------------------------------------------------- installing


def test_no_network_is_said_and_what_to_do():
    text = run.explain(
        "WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError("
        "<...>: Failed to establish a new connection: [Errno -3] Temporary failure in name "
        "resolution')': /simple/numpy/\n"
        "ERROR: No matching distribution found for numpy==2.4.6\n"
    )
    assert text.startswith("the package index cannot be reached")
    assert "No matching distribution found for numpy==2.4.6" in text
    assert "Retrying" not in text
    assert "HTTPS_PROXY" in text
    assert "run the same command again" in text
    assert "\n" not in text


def test_another_failure_is_not_called_a_network_failure():
    text = run.explain("line\n" * 9 + "ERROR: numpy-2.4.6.whl is damaged\n")
    assert "cannot be reached" not in text
    assert "numpy-2.4.6.whl is damaged" in text
    assert "\n" not in text


@pytest.mark.parametrize(
    "log",
    [
        "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device\n",
        "error: Failed to install: numba\n  Caused by: No space left on device (os error 28)\n",
    ],
)
def test_a_full_disk_is_said(log):
    text = run.explain(log)
    assert text.startswith("the disk is full")
    assert "\n" not in text


@pytest.mark.parametrize(
    ("works", "tools"),
    [
        ({"uv"}, ["uv"]),
        ({"pip"}, ["get uv", "pip"]),  # uv cannot be had
        ({"get uv", "pip"}, ["get uv", "uv", "pip"]),  # uv can be had, but fails
    ],
)
def test_pip_stands_in_for_uv(monkeypatch, works, tools):
    used = []

    def quietly(command, env=None):
        if command[2:4] == ["uv", "--version"]:
            return "uv" in works, ""
        if command[2:5] == ["pip", "config", "list"]:
            return True, ""
        tool = "get uv" if str(run.lock_file("uv")) in command else command[2]
        used.append(tool)
        return tool in works, ""

    monkeypatch.setattr(run, "quietly", quietly)
    run.install(["-r", "lab.txt"])
    assert used == tools


def test_uv_is_told_the_index_that_pip_uses():
    told = run.uv_environment({"global.index-url": "https://mirror/simple", "global.x": "y"}, {})
    assert told == {"UV_DEFAULT_INDEX": "https://mirror/simple"}
    own = {"UV_DEFAULT_INDEX": "https://own"}
    assert run.uv_environment({"global.index-url": "https://mirror/simple"}, own) == own


def test_quietly_reports_success_and_output():
    assert run.quietly([sys.executable, "-c", "print('fine')"]) == (True, "fine\n")
    works, log = run.quietly([sys.executable, "-c", "import sys; sys.exit('broken')"])
    assert not works
    assert "broken" in log


# ------------------------------------------------------------------------------------------- GPUs


@pytest.mark.parametrize(
    ("driver", "usable"), [(None, False), ("", False), ("580.65.06", True), ("610.2", True)]
)
def test_gpu_is_used_with_a_driver_of_cuda_13(driver, usable):
    assert run.gpu_usable(driver) is usable


def test_an_old_driver_is_named(capsys):
    assert run.gpu_usable("535.104") is False
    error = capsys.readouterr().err
    assert "535.104" in error
    assert "580" in error


@pytest.mark.parametrize(
    ("platform", "driver", "sets"),
    [
        ("linux", "580.65", ["gpu"]),
        ("linux", "535.104", ["forecast"]),
        ("win32", None, ["forecast"]),
        ("darwin", None, []),
    ],
)
def test_compilers_are_there_without_a_gpu(monkeypatch, platform, driver, sets):
    found = []
    monkeypatch.setattr(run.sys, "platform", platform)
    monkeypatch.setattr(run, "gpu_driver", lambda: driver)
    monkeypatch.setattr(run, "set_up", found.append)
    for name in (run.NUMBA, run.MLIR):
        monkeypatch.setattr(run, "compiler", lambda name=name: name)
        run.set_up_cuda()
    assert found == sets + [f"{name}-mlir" for name in sets]


@pytest.mark.parametrize(("driver", "stays"), [("580.65", "simulator"), (None, "predicted")])
def test_failing_cuda_packages_leave_the_course(monkeypatch, capsys, driver, stays):
    def fail(name):
        raise run.SetupError(f"no {name}")

    monkeypatch.setattr(run.sys, "platform", "linux")
    monkeypatch.setattr(run, "gpu_driver", lambda: driver)
    monkeypatch.setattr(run, "set_up", fail)
    run.set_up_cuda()
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("gemmlab: no CUDA packages")
    assert stays in line

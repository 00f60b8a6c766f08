#!/usr/bin/env python3
"""The one entry of gemmlab: `python3 run.py VERB`; each verb sets up what it needs in `.venv`.

Standard library only, and syntax that Python 3.6 can read, so that an old one gets a clear line.
"""

import contextlib
import errno
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

OLDEST = (3, 11)
ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
STATE = VENV / "gemmlab.json"  # what is installed; there from the first moment of a .venv made here
BEFORE = "uv", "build"  # lock files of what installs the others
GRACE = 15.0  # seconds between Ctrl-C and the end of a verb
MOST_WORKERS = 8  # of the tests
QUICK = 4.0  # CPU seconds of each folder of tests that `test --quick` runs
FIRST = 10.0  # of its cheapest file, if that takes longer
LEAST_FREE = 50e6  # bytes on the disk, below which not even an empty .venv fits
OLDEST_DRIVER = 580  # CUDA 13.0 release notes, table of minimum driver versions
NUMBA, MLIR = "numba-cuda", "numba-cuda-mlir"
COMPILERS = {NUMBA: ("forecast", "gpu"), MLIR: ("forecast-mlir", "gpu-mlir")}  # -> lock files
NOT_OURS = "Move it away or delete it, then run the same command again."

# verb -> (lock file of what it needs, whether it compiles kernels for GPUs, one line of help)
VERBS = {
    "lab": ("lab", True, "open the course in JupyterLab"),
    "test": ("test", True, "run all tests; --quick: in 90 s; --browser: those in a browser"),
    "book": ("book", False, "build the site; --preview: soon; --pdf, --slides 06: print it"),
    "lint": ("test", False, "check style and formatting with ruff"),
    "record": ("lab", True, "measure the kernels on this machine and keep the results"),
    "validate": ("test", True, "compare the library with the GPU of this machine"),
    "release": ("test", False, "build and try the package's files, and say what is left to do"),
    "doctor": ("lab", True, "say what works on this machine, and how to mend the rest"),
}


class SetupError(Exception):
    """The environment could not be made; the message says why and what to do."""


# ------------------------------------------------------------------------------- what is needed


def refuse_old_python(version, executable):
    """Exit with one line if `version`, as in `sys.version_info`, is older than 3.11."""
    if tuple(version[:2]) < OLDEST:
        sys.exit(
            f"gemmlab needs Python {OLDEST[0]}.{OLDEST[1]} or newer; "
            f"{executable} is {version[0]}.{version[1]}. "
            "Install a newer one and run it by name, for example: python3.12 run.py lab"
        )


def stamp(lock: str, project: str, python: str, root: str) -> str:
    """The fingerprint of one set of packages: any change of an argument asks for a set-up."""
    text = "\0".join([lock, project, python, root])
    return hashlib.sha256(text.encode()).hexdigest()


def wanted(name: str) -> str:
    """The stamp that the set `name` has when it is complete and up to date."""
    lock = "".join(lock_file(each).read_text("utf-8") for each in (*BEFORE, name))
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    return stamp(lock, project, "{}.{}".format(*sys.version_info), str(ROOT))


def lock_file(name: str) -> Path:
    """The file that pins the packages of the set `name`, with the hashes of their files."""
    return ROOT / "requirements" / f"{name}.txt"


def venv_python() -> Path:
    """The interpreter inside `.venv`."""
    return VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def gpu_driver() -> "str | None":
    """The version of the NVIDIA driver, or None where no GPU answers."""
    if not shutil.which("nvidia-smi"):
        return None
    ask = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        answer = subprocess.run(ask, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = answer.stdout.split()
    return lines[0] if answer.returncode == 0 and lines else None


def gpu_usable(driver: "str | None") -> bool:
    """Whether CUDA 13 runs on this driver; says so if it is too old."""
    if driver is None or not driver.split(".")[0].isdigit():
        return False
    if int(driver.split(".")[0]) >= OLDEST_DRIVER:
        return True
    say(
        f"NVIDIA driver {driver} is too old for CUDA 13 (needs {OLDEST_DRIVER}): "
        "the course runs on the simulator and recorded data"
    )
    return False


# ------------------------------------------------------------------------------- the environment


def say(text: str) -> None:
    """One line to the user, on stderr, so that a verb's own output stays clean."""
    print(f"gemmlab: {text}", file=sys.stderr, flush=True)


def read_state() -> dict:
    """The stamps of the sets in `.venv`; empty where none is complete."""
    try:
        state = json.loads(STATE.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return state if isinstance(state, dict) else {}


def write_state(state: dict) -> None:
    """Replace the state in one step, so that an interrupt leaves the old or the new one."""
    fresh = STATE.with_suffix(".new")
    fresh.write_text(json.dumps(state, indent=1), "utf-8")
    fresh.replace(STATE)


def runs_this_python(python: Path) -> bool:
    """Whether `python` works and is of the version that reads this line."""
    ask = [str(python), "-c", "import sys, pip; print(sys.version_info[:2])"]
    try:
        answer = subprocess.run(ask, capture_output=True, text=True)
    except OSError:
        return False
    return answer.stdout.strip() == str(sys.version_info[:2])


def compiler() -> str:
    """Which of `COMPILERS` this `.venv` has, or will have."""
    return read_state().get("compiler", NUMBA)


def choose(name: str) -> None:
    """Have `.venv` compile kernels with the compiler `name`, now and later.

    One that has the other's packages is made anew: installing more takes none away.
    """
    if name not in COMPILERS:
        raise SetupError(f"--compiler {name!r}; use one of: {' '.join(COMPILERS)}")
    with alone():
        if name == compiler():
            return
        if STATE.exists():
            say(f"{VENV.name} is made anew, for {name}")
            shutil.rmtree(VENV)
        elif VENV.exists():
            raise SetupError(f"{VENV} was not made by run.py. {NOT_OURS}")
        VENV.mkdir()
        write_state({"compiler": name})


def chosen(arguments: "list[str]") -> "list[str]":
    """Take `--compiler NAME` out of the arguments of a verb, and `choose` it."""
    if "--compiler" not in arguments:
        return arguments
    at = arguments.index("--compiler")
    choose((*arguments, "")[at + 1])
    return arguments[:at] + arguments[at + 2 :]


def make_venv() -> None:
    """Make `.venv`, or make it again if it is half made or of another Python."""
    if runs_this_python(venv_python()):
        return
    if VENV.exists() and not STATE.exists():
        raise SetupError(
            f"{VENV} exists, but is not a virtual environment of Python "
            "{}.{} made by run.py. ".format(*sys.version_info)
            + NOT_OURS
        )
    say(f"making {VENV.name} with Python {sys.version.split()[0]} ...")
    kept = {key: value for key, value in read_state().items() if key == "compiler"}
    shutil.rmtree(VENV, ignore_errors=True)
    VENV.mkdir(exist_ok=True)
    write_state(kept)
    answer = subprocess.run(
        [sys.executable, "-m", "venv", str(VENV)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if answer.returncode != 0:
        if shutil.disk_usage(str(ROOT)).free < LEAST_FREE:  # pip inside it does not say so
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(VENV))
        raise SetupError(
            f"`{sys.executable} -m venv` failed ({end_of(answer.stdout)}). "
            "On Debian and Ubuntu: sudo apt install python3-venv. Then run the same command again."
        )


def quietly(command: list, env: "dict | None" = None) -> "tuple[bool, str]":
    """Run a command, a dot every five seconds; whether it worked, and what it wrote."""
    process = subprocess.Popen(
        command,
        cwd=str(ROOT),
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    )
    dotted = False
    try:
        while True:
            try:
                log = process.communicate(timeout=5)[0]
                return process.returncode == 0, log
            except subprocess.TimeoutExpired:
                dotted = True
                print(".", end="", file=sys.stderr, flush=True)
    except BaseException:
        process.kill()
        process.wait()
        raise
    finally:
        print("\n" * dotted, end="", file=sys.stderr, flush=True)


def uv_environment(pip: "dict[str, str]", env: "dict[str, str]") -> "dict[str, str]":
    """The environment for uv, which does not read pip's settings: the index that pip was given."""
    told = {key.split(".", 1)[-1]: value for key, value in pip.items()}
    names = {"index-url": "UV_DEFAULT_INDEX", "cert": "SSL_CERT_FILE"}
    return {**{uv: told[key] for key, uv in names.items() if key in told}, **env}


def pip_settings(python: str) -> "dict[str, str]":
    """What `pip config list` says: key -> value."""
    works, log = quietly([python, "-m", "pip", "config", "list"])
    pairs = [line.partition("=") for line in log.splitlines() if "=" in line]
    return {key: " ".join(value.strip("'\"").split()) for key, _, value in pairs if works}


def install(arguments: list) -> None:
    """Install with uv, which is put into `.venv` first, or else with pip."""
    python = str(venv_python())
    pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "--retries", "2"]
    works = quietly([python, "-m", "uv", "--version"])[0]
    works = works or quietly([*pip, "--only-binary", ":all:", *pinned("uv")])[0]
    if works:
        env = uv_environment(pip_settings(python), dict(os.environ))
        uv = [python, "-m", "uv", "pip", "install", "--compile-bytecode", "--python", python]
        command = [*uv, *arguments]
        works = quietly(command, env)[0]
    if not works:
        works, log = quietly([*pip, *arguments])
        if not works:
            raise SetupError(explain(log))


def pinned(*names: str) -> list:
    """The arguments that install what these sets pin, and no other files under their names."""
    files = [part for name in names for part in ("-r", str(lock_file(name)))]
    return ["--require-hashes", *files]


def explain(log: str) -> str:
    """The line for a failed installation, from what pip wrote."""
    signs = [
        "name resolution",
        "getaddrinfo",
        "nodename nor servname",
        "Failed to establish a new connection",
        "NewConnectionError",
        "Connection refused",
        "ConnectTimeout",
        "Network is unreachable",
        "ProxyError",
        "timed out",
    ]
    if "do not match the hashes" in log.lower() or "hash mismatch" in log.lower():
        why = "a package is not the file that requirements/ names"
        cure = "Ask whoever runs the package index or the mirror."
    elif "No space left" in log:
        why, cure = "the disk is full", "Free some space."
    elif any(sign in log for sign in signs):
        why = "the package index cannot be reached"
        cure = (
            "Check the network, and behind a proxy set HTTPS_PROXY; "
            "for a mirror: python3 -m pip config set global.index-url URL."
        )
    else:
        why, cure = "the packages could not be installed", "Mend what it names."
    return f"{why} ({end_of(log)}). {cure} Then run the same command again: it goes on from here."


def refused(error: OSError) -> str:
    """The line for a file that the system does not let us write."""
    place = error.filename or ROOT
    if error.errno == errno.ENOSPC:
        return f"the disk is full ({place}). Free some space, then run the same command again."
    return (
        f"{place} cannot be written: {error.strerror or error}. Move {ROOT} to where you may "
        "write, such as your home folder, then run the same command again there."
    )


def end_of(log: str) -> str:
    """The last line of a log, which names the error, without its full stop."""
    lines = [line.strip() for line in log.splitlines() if line.strip() and "WARNING" not in line]
    return lines[-1].rstrip(".") if lines else "without a word"


@contextlib.contextmanager
def alone():
    """Keep out other set-ups of this clone, which wait until this one has ended.

    The lock is the system's, on the clone's folder: it ends with this process. Windows has none.
    """
    try:
        import fcntl
    except ImportError:
        yield
        return
    holder = os.open(str(ROOT), os.O_RDONLY)
    try:
        try:
            fcntl.flock(holder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another set-up of this clone is at work; this one goes on when it has ended")
            fcntl.flock(holder, fcntl.LOCK_EX)
        except OSError:  # a file system without locks
            pass
        yield
    finally:
        os.close(holder)


def set_up(name: str) -> None:
    """Bring `.venv` to the state that the lock file of the set `name` describes."""
    with alone():
        set_up_alone(name)


def set_up_alone(name: str) -> None:
    """The same, where no other process does it."""
    make_venv()
    state, goal = read_state(), wanted(name)
    if state.get(name) == goal:
        return
    began = time.monotonic()
    say(f"installing the packages for `{name}`: once, a minute or a few ...")
    write_state({key: value for key, value in state.items() if key != name})
    install(pinned("build", name))
    install(["--no-deps", "--no-build-isolation", "-e", str(ROOT)])
    write_state({**read_state(), name: goal})
    say(f"ready after {time.monotonic() - began:.0f} s")


def set_up_cuda() -> None:
    """Add NVIDIA's packages: all where a GPU can use them, elsewhere the compilers alone, by which
    kernels' times are predicted. Without them the course still runs; macOS has none.
    """
    if sys.platform == "darwin":
        return
    (name, on_gpu), without = COMPILERS[compiler()], "so no times are predicted from compiled code"
    if gpu_usable(gpu_driver()):
        name, without = on_gpu, "so the simulator and recorded data are used"
    try:
        set_up(name)
    except SetupError as error:
        say(f"no CUDA packages, {without}: {error}")


# --------------------------------------------------------------------------------- the verbs


def call(*command: str) -> int:
    """Run Python in `.venv`; Ctrl-C reaches it too, and it has `GRACE` seconds to end in order."""
    env = dict(os.environ)
    # Each notebook and many tests start a Python: without bytecode all packages are compiled anew.
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    process = subprocess.Popen([str(venv_python()), *command], cwd=str(ROOT), env=env)
    signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    try:
        return process.wait()
    except KeyboardInterrupt:
        return wind_up(process)


def wind_up(process: subprocess.Popen) -> int:
    """Wait for an interrupted process; end it if only this one was interrupted."""
    timeout = GRACE
    while True:
        try:
            return process.wait(timeout)
        except KeyboardInterrupt:
            continue
        except subprocess.TimeoutExpired:
            process.terminate()
            timeout = None


def lab(extra: "list[str]") -> int:
    """Serve a working copy of the notebooks until Ctrl-C."""
    return call("-m", "lab", *extra)


def workers() -> int:
    """How many processes test: one for each core, but no more than fit into memory and one GPU."""
    usable = getattr(os, "sched_getaffinity", None)
    return min(len(usable(0)) if usable else os.cpu_count() or 1, MOST_WORKERS)


def quick_files() -> "list[str]":
    """The cheapest files of each folder of tests, by what is recorded, and all doctests."""
    recorded = json.loads((ROOT / "tests" / "durations.json").read_text("utf-8"))["everybody"]
    chosen, spent = ["gemmlab"], {}
    for name, seconds in sorted(recorded.items(), key=lambda item: (item[1], item[0])):
        folder = name.rpartition("/")[0]
        spent[folder] = spent.get(folder, 0) + seconds
        if folder.startswith("tests") and (
            spent[folder] <= QUICK or seconds == spent[folder] <= FIRST
        ):
            chosen.append(name)
    return chosen


def test(extra: "list[str]") -> int:
    """What pyproject.toml names, or the paths given, in parallel; `-n0` is one process."""
    if "--browser" in extra:
        return browsed([word for word in extra if word != "--browser"])
    if "--quick" in extra:
        given = [word for word in extra if word != "--quick"]
        extra = [*quick_files(), "-m", "not measuring", *given]  # paths would ask for all marks
    return call("-m", "pytest", f"--numprocesses={workers()}", *extra)


def browsed(extra: "list[str]") -> int:
    """Test the lab, the site and every chapter in its page, in a browser that is installed."""
    if not any(map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))):
        raise SetupError("no Chromium or Chrome is on the PATH; Debian: sudo apt install chromium")
    site = ROOT / "book" / "_build" / "html" / "lite" / "index.html"
    if not site.is_file() and extra != ["--version"]:  # which asks for the packages alone
        raise SetupError("there is no live site; `python3 run.py book` makes it, or says why not")
    set_up("browser")
    os.environ.setdefault("LIVE_CHAPTERS", "all")
    return call("-m", "pytest", "tests/browser", *extra)


def book(extra: "list[str]") -> int:
    """Execute the notebooks into a site, and print it if asked to; a warning is an error.

    In a preview explorers show the ends of each control alone, so that it is there sooner.
    """
    out = ROOT / "book" / "_build" / "html"
    if "--preview" in extra:
        os.environ["GEMMLAB_PREVIEW"] = "1"
        extra = [word for word in extra if word != "--preview"]
    if "--pdf" in extra:
        set_up("pdf")
        built = book([word for word in extra if word != "--pdf"])
        return built or call("-m", "book.printed", str(out), str(out.parent / "gemmlab.pdf"))
    if "--slides" in extra:
        at = extra.index("--slides")
        built = book(extra[:at])
        return built or call("-m", "book.slides", str(out), *extra[at + 1 :])
    sphinx = ["-m", "sphinx", "-E", "-W", "--keep-going", "-b", "html"]
    live = not extra and call("-m", "book.live", "--fetch") == 0
    os.environ["GEMMLAB_LIVE"] = "1" if live else ""  # whether pages have a button for it
    os.environ["GEMMLAB_TRANSLATED"] = "" if extra else "1"  # and one for the other language
    code = call(*sphinx, *extra, str(ROOT / "book"), str(out))
    if code == 0 and not extra:  # after the first, which has executed the notebooks
        code = call(*sphinx, "-D", "language=zh_CN", str(ROOT / "book"), str(out / "zh"))
    if code == 0 and live:
        code = call("-m", "book.live", str(out))
    if code == 0:
        print(out / "index.html")
    return code


def record(extra: "list[str]") -> int:
    """Measure the ladders, as `gemmlab record` does, or what a campaign names."""
    return call("-m", "benchmarks.record", *extra)


def validate(extra: "list[str]") -> int:
    """Every check against hardware, in pieces that resume; the tests of these programs first,
    where no part of it is asked for.
    """
    tested = 0 if extra else test(["-m", "measuring"])
    return call("-m", "benchmarks.hardware.validate", *extra) or tested


def release(extra: "list[str]") -> int:
    """Look at what a release needs; nothing is sent."""
    return call("-m", "book.release", *extra)


def lint(extra: "list[str]") -> int:
    """Both of ruff's checks, so that one run shows all there is to mend."""
    checked = call("-m", "ruff", "check", *extra)
    return call("-m", "ruff", "format", "--check", *extra) or checked


def usage() -> str:
    """The verbs, one line each."""
    lines = [f"  {verb:<10}{line}" for verb, (_, _, line) in VERBS.items()]
    usage = "usage: python3 run.py VERB [--compiler NAME] [arguments of the verb]"
    names = f"  NAME: {' or '.join(COMPILERS)}, which .venv keeps; without it {compiler()}"
    return "\n".join([usage, names, *lines])


def main(argv: "list[str]") -> int:
    """Run one verb; without one, list them."""
    refuse_old_python(sys.version_info, sys.executable)
    verb = argv[0] if argv else "--help"
    if verb in ("-h", "--help"):
        print(usage())
        return 0
    if verb not in VERBS:
        say(f"no verb {verb!r}; there are: {' '.join(VERBS)}")
        return 2
    lock, compiles, _ = VERBS[verb]
    try:
        arguments = chosen(argv[1:])
        set_up(lock)
        if compiles:
            set_up_cuda()
        own = {one.__name__: one for one in (lab, test, book, lint, record, validate, release)}
        if verb in own:
            return own[verb](arguments)
        whole, log = quietly([str(venv_python()), "-c", "import gemmlab.doctor"])
        if not whole:  # what the doctor itself needs is missing or broken
            again = "Delete it, then run the same command again."
            raise SetupError(f"{VENV} is damaged ({end_of(log)}). {again}")
        return call("-m", "gemmlab", verb, *arguments)
    except SetupError as error:
        say(str(error))
        return 1
    except OSError as error:
        say(refused(error))
        return 1
    except KeyboardInterrupt:
        say("interrupted; run the same command again and it goes on from here")
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

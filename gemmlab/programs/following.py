"""All processes of a program are followed: what kernels did is on the disk before the next line.

`gemmlab simulate` runs a program in a copy of its own process, waits for it, and reads what that
process, and each that it started, has kept in a `Spool`. So nothing is missing where a process ends
without a word, by `os._exit` or a signal, and a launch that had not ended is known by its
beginning. Copies of a process keep on writing to the spool; a new Python finds it by the
environment, through `started/sitecustomize.py`. Other tools do the same: compute-sanitizer has
`--target-processes all`.
"""

import atexit
import contextlib
import copy
import os
import pickle
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

from gemmlab.compiled.sass.execution.machine import dim
from gemmlab.programs.forecasts import place
from gemmlab.programs.running import Account, Outcome, Unended, in_place_of_numba
from gemmlab.simt.cuda import kernels
from gemmlab.simt.cuda.kernels import Call, Launched, Watcher
from gemmlab.simt.report.report import Origin

SPOOL = "GEMMLAB_SIMULATE"  # the folder of the spool, in the environment of what a program starts
STARTED = Path(__file__).with_name("started")  # where a new Python finds its `sitecustomize`
PATIENCE = 5.0  # seconds that a program has after Ctrl-C, before it is told again


class Spool:
    """A folder with a file for each process of a program, to which it adds what comes to pass.

    An entry is (time, thread, what, content), with the system's time, which all processes share.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self._lock = threading.Lock()
        self._process, self._file = 0, -1
        self._known: set[tuple[str, int]] = set()  # sources that this process has written

    def watcher(self) -> Watcher:
        """What writes each launch of this process and of its copies."""
        return Watcher(self._begun, self._launched, self._failed)

    def write(self, what: str, content: Any) -> None:
        """Add an entry, whole. Raises OSError where the disk is full."""
        entry = time.monotonic_ns(), threading.get_ident(), what, content
        data = pickle.dumps(entry, protocol=5)
        with self._lock:
            left = memoryview(len(data).to_bytes(8, "little") + data)
            file = self._own_file()
            while left:
                left = left[os.write(file, left) :]

    def _own_file(self) -> int:
        """The file of this process, which may be a copy of the one that opened it."""
        if self._process != os.getpid():
            self._process, self._known = os.getpid(), set()
            path = self.folder / f"{self._process}"
            self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        return self._file

    def _begun(self, call: Call) -> None:
        origin = call.kernel.origin or Origin.of(call.kernel.py_func)
        where = place(*origin[1:])
        self.write("begun", Unended(origin.name, where, dim(call.grid), dim(call.block)))

    def _failed(self) -> None:
        self.write("failed", None)

    def _launched(self, launched: Launched) -> None:
        """Write a report; a source that this process has written before only by its place."""
        with self._lock:
            self._own_file()
            new = launched.report.sources.keys() - self._known
            self._known |= new
        report = copy.copy(launched.report)
        report.watchers, report.undecided, report.trace = [], [], []
        sources, place = report.sources, (report.source.file, report.source.first_line)
        report.sources = {p: source if p in new else None for p, source in sources.items()}
        report.source = None
        self.write("launched", (place, report, launched.seconds))

    def read(self) -> Iterator[tuple[int, int, str, Any]]:
        """All entries with their processes, (process, thread, what, content), in time's order."""
        found = [(*entry, int(path.name)) for path in self.folder.iterdir() for entry in _of(path)]
        sources: dict[tuple, Any] = {}
        for _, thread, what, content, process in sorted(found, key=lambda entry: entry[0]):
            if what == "launched":
                place, report, seconds = content
                for p, source in report.sources.items():
                    if source is not None:
                        sources[process, p] = source
                report.sources = {p: sources[process, p] for p in report.sources}
                report.source = sources[process, place]
                content = Launched(report, seconds)
            yield process, thread, what, content


def _of(path: Path) -> Iterator[tuple]:
    """The whole entries of a file; what a process was writing when it ended is none."""
    left = memoryview(path.read_bytes())  # a slice copies nothing, however many entries there are
    while len(left) >= 8 and len(left) >= 8 + (size := int.from_bytes(left[:8], "little")):
        yield pickle.loads(left[8 : 8 + size])
        left = left[8 + size :]


def account(spool: Spool, outcome: Outcome) -> None:
    """Put into `outcome` what the processes of a program have kept."""
    running: dict[tuple[int, int], Unended] = {}
    outcome.account = Account()
    for process, thread, what, content in spool.read():
        if what == "begun":
            running[process, thread] = content
        elif what == "failed":
            running.pop((process, thread), None)
        elif what == "launched":
            running.pop((process, thread), None)
            outcome.account.add(content)
        elif what == "numba":
            outcome.numba = content
        else:
            outcome.predicted = content
    outcome.unended = list(running.values())


# ----------------------------------------------------------------------------- processes


def run(program: Callable[[Spool], int], outcome: Outcome) -> None:
    """Run `program` in a copy of this process, and put into `outcome` what came of it.

    program : what the copy does; it writes to the spool, and returns the exit status
    Where no process can be copied, on Windows, it runs in this one: what ends itself without a word
    then has no account.
    """
    folder = Path(tempfile.mkdtemp(prefix="gemmlab-"))
    spool, here = Spool(folder), os.getpid()
    try:
        flush()
        if not hasattr(os, "fork"):
            outcome.status = _followed(program, spool)
        elif child := os.fork():
            outcome.status = _status(child)
        else:
            _to_its_end(program, spool)
        account(spool, outcome)
    finally:
        if os.getpid() == here:
            shutil.rmtree(folder, ignore_errors=True)


def _followed(program: Callable[[Spool], int], spool: Spool) -> int:
    """Run a program with a watcher of its launches, in an environment that says where to keep."""
    watcher = spool.watcher()
    with kernels.watched_by(watcher), in_environment(spool.folder):
        return program(spool)


def _to_its_end(program: Callable[[Spool], int], spool: Spool) -> NoReturn:
    """Run a program in a copy of the process, and end that as Python ends one.

    What the process had registered for its own end is not the copy's to do.
    """
    status = 1
    try:
        atexit._clear()
        status = _followed(program, spool)
        threading._shutdown()  # waits for threads
        if "multiprocessing.util" in sys.modules:
            sys.modules["multiprocessing.util"]._exit_function()  # waits for processes
        atexit._run_exitfuncs()
    except BaseException:
        traceback.print_exc()
    finally:
        flush()
        os._exit(status)


def flush() -> None:
    """Write what was printed; where nobody takes it, closed or full, there is nothing to do."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):  # AttributeError: it is None
            stream.flush()


def _status(child: int) -> int:
    """Wait for the program; its exit status, as a shell gives it.

    Ctrl-C reaches all processes of a terminal. Where it reached this one alone, the program is told
    after a while, and at each Ctrl-C that follows.
    """

    def tell(*_: Any) -> None:
        os.kill(child, signal.SIGINT)

    def wait(*_: Any) -> None:
        signal.signal(signal.SIGINT, tell)
        signal.setitimer(signal.ITIMER_REAL, PATIENCE, PATIENCE)

    answers = {
        signal.SIGINT: wait,
        signal.SIGALRM: tell,
        signal.SIGTERM: lambda *_: os.kill(child, signal.SIGTERM),
    }
    before = {number: signal.signal(number, answer) for number, answer in answers.items()}
    try:
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, answer in before.items():
            signal.signal(number, answer)
    return code if code >= 0 else 128 - code


@contextlib.contextmanager
def in_environment(folder: Path) -> Iterator[None]:
    """Let each Python that is started meanwhile find the spool, and `follow`.

    It finds `sitecustomize.py` alone: packages of this Python are not another version's.
    """
    before = {name: os.environ.get(name) for name in (SPOOL, "PYTHONPATH")}
    os.environ[SPOOL] = str(folder)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(STARTED), before["PYTHONPATH"]]))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


_for_good = contextlib.ExitStack()  # of a process that follows, and that nothing leaves


def follow() -> None:
    """Let this process, which a program has started, run on the simulated GPU and keep account."""
    folder = os.environ.get(SPOOL, "")
    if not os.path.isdir(folder):  # the program has ended, and this process goes on
        return
    spool = Spool(folder)
    spool.write("numba", _for_good.enter_context(in_place_of_numba()))
    _for_good.enter_context(kernels.watched_by(spool.watcher()))

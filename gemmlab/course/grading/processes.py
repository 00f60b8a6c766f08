"""Notebooks are judged in processes of their own, several at once, and what is found is kept.

A process that ends before its notebook is done costs the exercise that it was at, and another one
takes the rest. What is found of a notebook is kept in a folder, whole, under a name made of all
that decides it: whoever grades again, or was interrupted, goes on from there.
"""

from __future__ import annotations

import base64
import hashlib
import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from gemmlab.course import exercise_modules
from gemmlab.course.grading.judged import ERROR, NOT_JUDGED, Judged
from gemmlab.course.grading.walls import CACHE, HOME, Walls
from gemmlab.course.judging.copy_of_process import end_started
from gemmlab.here import files
from gemmlab.here.compilers import lacking

WALL = 1_800.0  # seconds by the clock, for one process of a notebook
_PREDICT = """
from gemmlab import Gemm, kernels, predict_rung
predict_rung(Gemm(256, 256, 256), "h200", kernels.naive)
"""
PACKAGE = Path(__file__).resolve().parents[2]
ENVIRONMENT = {
    "PYTHONPATH": str(PACKAGE.parent),
    "PYTHONHASHSEED": "0",  # sets in the same order each time
    "PATH": "/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "TMPDIR": HOME,
    "NUMBA_CACHE_DIR": str(CACHE),
    "OMP_NUM_THREADS": "1",  # a process with threads gets no namespace
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}


@dataclass
class Found:
    """What was found in one notebook.

    asked : exercises that it has; fault : why it cannot be read, empty where it can
    """

    asked: list[str] = field(default_factory=list)
    judged: dict[str, Judged] = field(default_factory=dict)
    fault: str = ""

    @property
    def whole(self) -> bool:
        """Whether another try would find the same."""
        return all(one.state != NOT_JUDGED for one in self.judged.values())

    @property
    def data(self) -> bytes:
        """The same as a file of JSON."""
        judged = [one.data for _, one in sorted(self.judged.items())]
        data = {"asked": self.asked, "fault": self.fault, "judged": judged}
        return json.dumps(data, indent=1).encode()

    @classmethod
    def of(cls, data: bytes) -> Found:
        """What `data` was made from; ValueError where it is something else."""
        given = json.loads(data)
        judged = [Judged.of(one) for one in given["judged"]]
        return cls(given["asked"], {one.exercise: one for one in judged}, given["fault"])


def keys(seed: str) -> dict[str, str]:
    """What the check of each exercise draws from: of the seed of a class, which none can tell."""
    return {
        name: hashlib.sha256(f"{name}/{seed}".encode()).hexdigest() for name in exercise_modules()
    }


@cache
def version() -> str:
    """A digest of all that judges: this library's source."""
    digest = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*.py")):
        digest.update(str(path.relative_to(PACKAGE)).encode() + path.read_bytes())
    return digest.hexdigest()


@dataclass(frozen=True)
class Grader:
    """Judges notebooks.

    seed : of the class; only : the exercises, all if there are none; kept : where outcomes are kept
    compiled : where Numba keeps the loop that predicts times, for all notebooks
    start : what Python is given to start a process that judges
    """

    seed: str
    only: tuple[str, ...] = ()
    kept: Path | None = None
    compiled: Path | None = None
    start: tuple[str, ...] = ("-m", "gemmlab.course.grading.worker")
    running: set[subprocess.Popen] = field(default_factory=set, compare=False)
    stopped: threading.Event = field(default_factory=threading.Event, compare=False)

    def walls(self) -> Walls:
        """The walls that stand on this machine."""
        (kind, what), *_ = self._run({}) or [("", None)]
        return Walls(tuple(what[0]), what[1]) if kind == "walls" else Walls((), "no process starts")

    def prepare(self) -> None:
        """Compile what predicts times, once: it takes longer than a notebook.

        Another command that shares the folder waits meanwhile.
        """
        if not self.compiled or lacking():
            return
        with files.locked(self.compiled):
            if not any(self.compiled.rglob("*.nbi")):
                environment = {**ENVIRONMENT, "NUMBA_CACHE_DIR": str(self.compiled)}
                subprocess.run([sys.executable, "-P", "-s", "-B", "-c", _PREDICT], env=environment)

    def every(
        self, notebooks: Sequence[Callable[[], bytes]], workers: int
    ) -> Iterator[tuple[int, Found]]:
        """The place of each notebook and what was found in it, in the order in which they end."""
        pool = ThreadPoolExecutor(workers)
        try:
            waiting = {pool.submit(self._read, read): i for i, read in enumerate(notebooks)}
            for done in as_completed(waiting):
                yield waiting[done], done.result()
        finally:
            self.stopped.set()
            for process in list(self.running):
                _kill(process)
            pool.shutdown(cancel_futures=True)

    def _read(self, read: Callable[[], bytes]) -> Found:
        try:
            content = read()
        except OSError as error:
            return Found(fault=f"the file cannot be read: {error.strerror or error}")
        return self.one(content)

    def one(self, content: bytes) -> Found:
        """What is found in one notebook, or was when it was judged before."""
        path = self.kept and self.kept / f"{self._name(content)}.json"
        if path:
            with suppress(OSError, ValueError, KeyError, TypeError):
                return Found.of(path.read_bytes())
        found = self._judge(content)
        if path and found.whole and not self.stopped.is_set():
            files.put(path, found.data)
        return found

    def _name(self, content: bytes) -> str:
        """The name under which a notebook is kept, made of all that decides what is found in it."""
        parts = [content, self.seed.encode(), " ".join(self.only).encode(), version().encode()]
        return hashlib.sha256(b"".join(hashlib.sha256(p).digest() for p in parts)).hexdigest()[:32]

    def _judge(self, content: bytes) -> Found:
        found = Found()
        job = {
            "notebook": base64.b64encode(content).decode(),
            "keys": keys(self.seed),
            "only": list(self.only),
        }
        while not self.stopped.is_set():
            at, ended = "", False
            for kind, what in self._run({**job, "done": list(found.judged)}):
                if kind == "begin":
                    at = what
                elif kind == "asked":
                    found.asked = what
                elif kind == "unreadable":
                    found.fault = what
                elif kind == "judged":
                    found.judged[at] = Judged.of(what)
                ended = kind == "end"
            if ended:
                return found
            if not at or at in found.judged:
                found.fault = found.fault or "the process that read it ended before its time"
                return found
            why = "the process that judged it ended before its time"
            found.judged[at] = Judged(at, ERROR, "judge-ended", why)
        return found

    def asked(self, job: dict[str, Any]) -> list[tuple[str, Any]]:
        """What a process that this grader starts says of a job of its own."""
        return self._run(job)

    def _run(self, job: dict[str, Any]) -> list[tuple[str, Any]]:
        """What a process says of a job; it says "end" at last, if it comes to its end."""
        with tempfile.TemporaryDirectory(prefix="gemmlab-") as home:
            process = subprocess.Popen(
                [sys.executable, "-P", "-s", "-B", *self.start],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd=home,
                env={**ENVIRONMENT, "HOME": home},
                start_new_session=True,
            )
            self.running.add(process)
            try:
                more = {"home": home, "compiled": self.compiled and str(self.compiled)}
                said = _said(process, json.dumps({**job, **more}).encode())
            finally:
                _kill(process)
                self.running.discard(process)
        return said


def _said(process: subprocess.Popen, job: bytes) -> list[tuple[str, Any]]:
    try:
        out, _ = process.communicate(job, timeout=WALL)
    except subprocess.TimeoutExpired:
        _kill(process)
        out, _ = process.communicate()
    lines = [json.loads(line) for line in out.split(b"\n")[:-1]]
    return [(kind, what) for kind, what in lines]


def _kill(process: subprocess.Popen) -> None:
    """End a process, and all that it has started."""
    if process.poll() is None:
        end_started(process.pid)
        process.kill()
        with suppress(subprocess.TimeoutExpired):
            process.wait(10)

"""Writing to a disk that fails: each write, flush, sync, rename and close fails once, in turn.

`faults` runs what writes in copies of this process. In the n-th copy the n-th step fails, in one of
three ways: the disk is full, after half of what was to be written; somebody presses Ctrl-C; or the
process is killed.
"""

import builtins
import errno
import io
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import pytest

WAYS = ("full", "interrupted", "killed")
# How a copy ends: it had fewer steps, it went on after the fault, it raised, it was killed.
DONE, WENT_ON, RAISED, KILLED = 0, 2, 3, 9


@dataclass
class Disk:
    """A disk whose step `fails` fails in a `way`; it counts the steps."""

    fails: int
    way: str
    steps: int = 0

    def step(self, real: Callable, half: Callable | None = None) -> object:
        """Take a step, or fail; half : what is done of it before it fails."""
        self.steps += 1
        if self.steps != self.fails:
            return real()
        if half is not None:
            half()
        if self.way == "killed":
            os._exit(KILLED)
        if self.way == "interrupted":
            raise KeyboardInterrupt
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class File:
    """A file on such a disk, opened to be written."""

    def __init__(self, disk: Disk, file: io.IOBase) -> None:
        self.disk, self.file = disk, file

    def __getattr__(self, name: str) -> object:
        return getattr(self.file, name)

    def __enter__(self) -> "File":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def write(self, content: str | bytes) -> object:
        half = lambda: (self.file.write(content[: len(content) // 2]), self.file.flush())  # noqa: E731
        return self.disk.step(partial(self.file.write, content), half)

    def flush(self) -> object:
        return self.disk.step(self.file.flush)

    def close(self) -> None:
        try:
            self.disk.step(self.file.flush)
        finally:
            self.file.close()


def on_disk(disk: Disk, patch: pytest.MonkeyPatch) -> None:
    """Let this process write to `disk`."""
    opened, written = builtins.open, os.write

    def open_(file, mode="r", *rest, **more):
        if not set(mode) & set("wax+"):
            return opened(file, mode, *rest, **more)
        return File(disk, disk.step(lambda: opened(file, mode, *rest, **more)))

    def write(descriptor, content):
        half = partial(written, descriptor, content[: len(content) // 2])
        return disk.step(partial(written, descriptor, content), half)

    patch.setattr(builtins, "open", open_)
    patch.setattr(io, "open", open_)
    patch.setattr(os, "write", write)
    for name in ("fsync", "replace", "rename", "mkdir", "truncate", "ftruncate"):
        real = getattr(os, name)
        patch.setattr(os, name, lambda *a, real=real, **k: disk.step(lambda: real(*a, **k)))


def faults(work: Callable[[], object]) -> Iterator[tuple[str, int, int]]:
    """Let each step of `work` fail in each way: yield the way, the step, and how the copy ended.

    Between two of them whoever asks looks at what is on the disk, and puts it back.
    """
    for way in WAYS:
        step = 0
        while True:
            step += 1
            child = os.fork()
            if not child:
                _fail(work, Disk(step, way))
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            if status == DONE:
                assert step > 1, "nothing was written"
                break
            yield way, step, status


def _fail(work: Callable[[], object], disk: Disk) -> None:
    """Do the work in this copy; it ends as DONE only where it did not come to the step."""
    status = 1
    try:
        with pytest.MonkeyPatch.context() as patch:
            on_disk(disk, patch)
            try:
                work()
            except (OSError, KeyboardInterrupt):
                status = RAISED
            else:
                status = DONE if disk.steps < disk.fails else WENT_ON
    finally:
        os._exit(status)

"""Files that are written whole: what is kept here is there before and after each moment.

`put` writes beside a file and then takes its place, so that a full disk, an interrupt or a power
cut leaves the old file or the new one. `locked` keeps other processes out meanwhile, for those that
read what they add to.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

HALF = ".half"  # what is being written ends so


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Wait until no other process holds a folder, and hold it, until it ends or this one does.

    The lock is the system's, on the folder itself: nothing is left behind by a process that is
    killed. Windows has no such lock, and a file system may refuse one; writers then take turns as
    they come, and `put` still writes whole files. The folder is made if it is missing.
    """
    folder.mkdir(parents=True, exist_ok=True)
    try:
        import fcntl
    except ImportError:
        yield
        return
    holder = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(holder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(holder)


def put(path: Path, content: bytes) -> None:
    """Write a file so that at each moment it holds `content`, or what it held before.

    Raises OSError where it cannot be written, a full disk for instance; nothing has changed then.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # Of its own also among threads, and among machines that share a folder.
    half = path.with_name(f".{path.name}.{os.urandom(6).hex()}{HALF}")
    try:
        with open(half, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(half, path)
    except BaseException:
        with contextlib.suppress(OSError):
            half.unlink()
        raise
    _keep_name(path.parent)


def _keep_name(folder: Path) -> None:
    """Let the disk keep a folder's list of names, where a folder can be asked to."""
    with contextlib.suppress(OSError):
        holder = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(holder)
        finally:
            os.close(holder)

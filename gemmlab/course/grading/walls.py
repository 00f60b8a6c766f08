"""The walls around the process that judges one notebook: what it may reach, and how much it takes.

On Linux they are the system's own namespaces, which need no rights: the process sees no network, no
other process, and of the files only Python, the libraries and this package, which it may read, and
an empty folder of its own in memory. It is the first process there: what it starts ends with it and
cannot end it. Where the system refuses (in many containers, and on other systems), the limits of
time, memory and files hold, and nothing else; `Walls.told` says what holds.

Sources: namespaces(7), user_namespaces(7), pid_namespaces(7), mount_setattr(2), pivot_root(2),
capset(2), prctl(2).
"""

import ctypes
import os
import platform
import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

USER, FILES, NETWORK, PROCESSES = 0x10000000, 0x00020000, 0x40000000, 0x20000000
MEMORY_OF_OTHERS, NAMES = 0x08000000, 0x04000000  # System V's memory and queues; the host's name
NOBODY = 65534
BIND, REC, PRIVATE, DETACH = 4096, 16384, 1 << 18, 2
READ_ONLY, NO_SUID, NO_DEVICES = 1, 2, 4
MOUNT_SETATTR = 442  # its number is the same on all of Linux's machines
HOME = "/own"
COMPILED = Path("/compiled")
CACHE = Path("/own/numba")  # Numba's, of one exercise
PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
OWN = ("own", "dev/shm")  # what may be written to; no module is ever looked for there
RECURSIVE, HERE = 0x8000, -100  # AT_RECURSIVE, AT_FDCWD
DUMPABLE, NO_NEW_PRIVILEGES, DEATH_SIGNAL = 4, 38, 1
CAPABILITIES = 0x20080522  # the version of capset(2)

SECONDS = 900  # of the processor, for all that one process of a notebook does
MEMORY = 6 << 30  # bytes of addresses; the libraries alone reserve one or two
WRITTEN = 64 << 20  # bytes of a file, and of all files in memory
STARTED = 300  # processes at once
OPENED = 256  # files at once


@dataclass(frozen=True)
class Walls:
    """The walls that stand; why the others do not, empty where all stand."""

    stand: tuple[str, ...]
    why_not: str = ""

    @property
    def told(self) -> str:
        """What holds on this machine, in one line."""
        held = f"each notebook has limits of {', '.join(self.stand)}"
        if not self.why_not:
            return f"Walls: {held}, and no network, files and processes but its own."
        return (
            f"Walls: {held}; none against files, network and processes ({self.why_not}): grade "
            "strangers' notebooks in a container, as the guide for teachers shows."
        )


class WallError(OSError):
    """The system refuses a wall."""


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _call(name: str, *arguments: object) -> None:
    if getattr(_libc(), name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise WallError(number, f"{name}: {os.strerror(number)}")


def limits() -> Walls:
    """Set the limits that every Unix has, and keep other processes of this user out."""
    import resource

    most = {
        "processor time": (resource.RLIMIT_CPU, SECONDS),
        "memory": (resource.RLIMIT_AS, MEMORY),
        "files": (resource.RLIMIT_FSIZE, WRITTEN),
    }
    stand = []
    for name, (which, value) in {**most, "": (resource.RLIMIT_NOFILE, OPENED)}.items():
        with suppress(OSError, ValueError):  # macOS has no limit of addresses
            hard = resource.getrlimit(which)[1]
            value = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(which, (value, value))
            stand += [name] if name else []
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        with suppress(OSError):
            _call("prctl", NO_NEW_PRIVILEGES, 1, 0, 0, 0)
            _call("prctl", DUMPABLE, 0, 0, 0, 0)
    return Walls(tuple(stand))


def stand(home: Path, package: Path, compiled: Path | None = None) -> Walls:
    """Put up all walls that this system has; returns in the process that they are around.

    home : an empty folder, in whose place the process gets one in memory
    package, compiled : this library's folder, and what Numba has compiled already
    """
    if sys.platform != "linux":
        return Walls(limits().stand, f"{platform.system()} has no namespaces")
    _call("prctl", DEATH_SIGNAL, int(signal.SIGKILL), 0, 0, 0)  # with who started it
    try:
        _alone()
    except OSError as error:
        return Walls(limits().stand, error.strerror or str(error))
    _continue_in_child()
    try:
        _only_these_files(home, package, compiled)
    except OSError as error:  # the network and the other processes are gone already
        _drop()
        return Walls(limits().stand, error.strerror or str(error))
    _few_processes()
    _drop()
    return limits()


def _alone() -> None:
    """Take namespaces of its own for users, files, network, processes and the rest."""
    user, group = os.getuid(), os.getgid()
    _call("unshare", USER | FILES | NETWORK | PROCESSES | MEMORY_OF_OTHERS | NAMES)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{NOBODY} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{NOBODY} {group} 1")


def _continue_in_child() -> None:
    """Go on as the first process of the new namespace; this one waits, and ends as that one does.

    The first process cannot be ended from inside, and all others end with it.
    """
    child = os.fork()
    if child:
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        os._exit(status if status >= 0 else 128 - status)
    _call("prctl", DEATH_SIGNAL, int(signal.SIGKILL), 0, 0, 0)


def _only_these_files(home: Path, package: Path, compiled: Path | None) -> None:
    """Make `home` a folder in memory, and then the root, with what Python needs to be read."""
    _call("mount", None, b"/", None, REC | PRIVATE, None)
    size = b"size=64m,nr_inodes=4k,mode=755"
    _call("mount", b"tmpfs", bytes(home), b"tmpfs", NO_SUID | NO_DEVICES, size)
    for path in _needed(package):
        inside = home / path.relative_to("/")
        if path.is_symlink():
            inside.parent.mkdir(parents=True, exist_ok=True)
            inside.symlink_to(os.readlink(path))
            continue
        (inside if path.is_dir() else inside.parent).mkdir(parents=True, exist_ok=True)
        if not path.is_dir():
            inside.touch()
        _call("mount", bytes(path), bytes(inside), None, BIND | REC, None)
        _read_only(inside)
    if compiled and compiled.is_dir():
        (home / COMPILED.name).mkdir()
        _call("mount", bytes(compiled), bytes(home / COMPILED.name), None, BIND | REC, None)
        _read_only(home / COMPILED.name)
    for name in ("proc", "tmp", *OWN):
        (home / name).mkdir(parents=True, exist_ok=True)
    for name in OWN:
        _call("mount", b"tmpfs", bytes(home / name), b"tmpfs", NO_SUID | NO_DEVICES, size)
    (home / "dev" / "fd").symlink_to("/proc/self/fd")
    _read_only(home, 0)  # or an answer could lay a module where the judge looks for its own
    _call("mount", b"proc", bytes(home / "proc"), b"proc", NO_SUID | NO_DEVICES, None)
    os.chdir(home)
    number = PIVOT_ROOT.get(platform.machine())
    if number is None:
        raise WallError(0, f"pivot_root of {platform.machine()} is not known")
    if _libc().syscall(number, b".", b".") != 0:
        raise WallError(ctypes.get_errno(), f"pivot_root: {os.strerror(ctypes.get_errno())}")
    _call("umount2", b".", DETACH)
    os.chdir(HOME)


def _needed(package: Path) -> Iterator[Path]:
    """What Python needs to run this library, outermost folders first, none inside another."""
    system = ["/usr", "/lib", "/lib64", "/bin", "/opt", "/etc/ld.so.cache", "/etc/localtime"]
    devices = [f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom")]
    libraries = [p for p in sys.path if Path(p).name in ("site-packages", "dist-packages")]
    prefixes = {sys.prefix, sys.base_prefix, sys.exec_prefix, str(package), *libraries}
    found: list[Path] = []
    for path in map(Path, [*system, *devices, *sorted(prefixes, key=len)]):
        inside = any(path.is_relative_to(one) for one in found if not one.is_symlink())
        if path.exists() and path != Path("/") and not inside:
            found.append(path)
            yield path


class _Attributes(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "userns")]


def _read_only(path: Path, depth: int = RECURSIVE) -> None:
    wanted = _Attributes(READ_ONLY | NO_SUID, 0, 0, 0)
    arguments = HERE, bytes(path), depth, ctypes.byref(wanted), ctypes.sizeof(wanted)
    if _libc().syscall(MOUNT_SETATTR, *arguments) != 0:
        number = ctypes.get_errno()
        raise WallError(number, f"mount_setattr: {os.strerror(number)}")


def _few_processes() -> None:
    """Bound the number of processes, by the user's limit and by that of the namespace's names."""
    import resource

    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NPROC, (STARTED, STARTED))
    with suppress(OSError):  # Linux 6.14: of this namespace alone, and it counts for root, too
        Path("/proc/sys/kernel/pid_max").write_text(str(STARTED + 1))


def _drop() -> None:
    """Give up the rights over these namespaces, with which the walls were put up."""
    header = (ctypes.c_uint32 * 2)(CAPABILITIES, 0)
    none = (ctypes.c_uint32 * 6)()
    _call("capset", ctypes.byref(header), ctypes.byref(none))


def sweep() -> None:
    """End and delete what answers have left, where this is the first process of its namespace.

    The next exercise gets a copy of what Numba has compiled already.
    """
    if os.getpid() != 1:
        return
    with suppress(ProcessLookupError, PermissionError):
        os.kill(-1, signal.SIGKILL)  # all but this one
    with suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)
    for folder in OWN:
        for path in Path("/", folder).iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
    if COMPILED.is_dir():
        shutil.copytree(COMPILED, CACHE, dirs_exist_ok=True)

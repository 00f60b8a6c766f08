"""Where numbers come from: what records of this machine and its tools say alike.

Each record adds what it alone knows, such as the data or the hash of a kernel's source.
"""

from __future__ import annotations

import platform
from datetime import UTC, datetime

from gemmlab.driver import gpu_status, package_version
from gemmlab.records import UNKNOWN
from gemmlab.sass import compiling

NOT_INSTALLED = "not installed"


def stamp(*names: str) -> dict[str, str]:
    """What each name stands for, on this machine and now.

    names : "date" (ISO 8601 in UTC), "driver", "python", "ptxas" and "nvdisasm", or a Python
        package, with underscores, as in "numba_cuda"
    Raises RuntimeError that says how to get a tool that is missing.

    >>> sorted(stamp("numpy", "python"))
    ['numpy', 'python']
    """
    return {name: _told(name) for name in names}


def version(package: str) -> str:
    """The version of an installed package, or "not installed"."""
    return package_version(package) or NOT_INSTALLED


def _told(name: str) -> str:
    if name == "date":
        return datetime.now(UTC).isoformat(timespec="seconds")
    if name == "driver":
        return gpu_status().driver or UNKNOWN
    if name == "python":
        return platform.python_version()
    if name in compiling.WHEELS:
        return compiling.version(name)
    return version(name.replace("_", "-"))

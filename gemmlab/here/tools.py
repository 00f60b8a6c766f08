"""The tools for compiled code that NVIDIA makes are found here, and the versions of all.

`ptxas` comes with the wheel nvidia-cuda-nvcc, `nvdisasm` with nvidia-cuda-nvdisasm; a CUDA Toolkit
has both. A record says by which versions it was made: `stamp` tells them for all records alike, and
each adds what it alone knows, such as the data or the hash of a kernel's source.
"""

import platform
import re
import shutil
import subprocess
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from gemmlab.here.driver import gpu_status, package_version

WHEELS = {"ptxas": "nvidia-cuda-nvcc", "nvdisasm": "nvidia-cuda-nvdisasm"}
NOT_INSTALLED = "not installed"
UNKNOWN = "unknown"  # of what the driver does not report


@cache
def tool(name: str) -> Path:
    """Find "ptxas" or "nvdisasm"; RuntimeError that says how to get it where there is none."""
    found = None
    try:
        from cuda.pathfinder import find_nvidia_binary_utility
    except ImportError:
        found = shutil.which(name)
    else:
        found = find_nvidia_binary_utility(name) or shutil.which(name)
    if found is None:
        raise RuntimeError(
            f"{name} is needed to read compiled code, and there is none: pip install {WHEELS[name]}"
        )
    return Path(found)


def tool_version(name: str) -> str:
    """The version of "ptxas" or "nvdisasm", "13.0.88" say."""
    return re.search(r"\bV([\d.]+\d)", run(name, "--version").stdout)[1]


def run(name: str, *arguments: Any) -> subprocess.CompletedProcess[str]:
    """Run a tool and return what it says; RuntimeError with its words where it refuses."""
    done = subprocess.run([tool(name), *arguments], capture_output=True, encoding="utf-8")
    if done.returncode:
        raise RuntimeError(f"{name} refused the code: {(done.stderr or done.stdout).strip()}")
    return done


def stamp(*names: str) -> dict[str, str]:
    """Tell the version of each name, on this machine and now.

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
    if name in WHEELS:
        return tool_version(name)
    return version(name.replace("_", "-"))

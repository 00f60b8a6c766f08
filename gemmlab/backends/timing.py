"""What CPU and GPU backends share: how often to repeat, and what to write down about a run."""

from __future__ import annotations

import hashlib
import inspect
import io
import platform
import textwrap
import tokenize
from datetime import UTC, datetime
from importlib import metadata

import numpy as np

from gemmlab.kernels.kernel import Kernel

_LINE_STARTS = (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
_LAYOUT = (*_LINE_STARTS, tokenize.NL, tokenize.COMMENT, tokenize.ENDMARKER)

FEWEST, MOST = 5, 100
SECONDS = 0.3  # of timed runs


def repetitions(seconds: float, repeats: int | None) -> int:
    """How often to time a run that takes `seconds`; `repeats` itself where it is given."""
    if repeats is not None:
        return repeats
    return int(min(MOST, max(FEWEST, SECONDS / max(seconds, 1e-9))))


def poisoned(c: np.ndarray, beta: float) -> np.ndarray:
    """C as a run finds it: where β = 0 it is not to be read, and holds NaN."""
    return np.full_like(c, np.nan) if beta == 0 else c.copy()


def provenance(kernel: Kernel) -> dict[str, str]:
    """What is known of a run before it starts: date, versions, and the kernel's source."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": version("numba"),
        "data": "normal, seed 0",
        "source_sha256": source_hash(kernel),
    }


def source_hash(kernel: Kernel) -> str:
    """SHA-256 of what `kernel.build` says: its tokens, without comments, docstrings and layout."""
    code, previous = [], tokenize.NEWLINE
    source = textwrap.dedent(inspect.getsource(kernel.build))
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        docstring = token.type == tokenize.STRING and previous in _LINE_STARTS
        if token.type not in _LAYOUT and not docstring:
            code.append(token.string)
        if token.type not in (tokenize.NL, tokenize.COMMENT):
            previous = token.type
    return hashlib.sha256("\n".join(code).encode()).hexdigest()


def version(package: str) -> str:
    """The version of an installed package, or "not installed"."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"

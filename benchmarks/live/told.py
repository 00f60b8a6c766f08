"""Results as texts that are equal where the results are, whatever the width of an integer is."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np


def told(x: Any) -> str:
    """Tell a result exactly: floats by their bits, integers by their value, arrays by a hash."""
    if x is None or isinstance(x, str | bool | np.bool_):
        return repr(bool(x)) if isinstance(x, np.bool_) else repr(x)
    if isinstance(x, int | np.integer):
        return str(int(x))
    if isinstance(x, float | np.floating):
        return float(x).hex()
    if isinstance(x, np.ndarray):
        return _array(x) if x.ndim else told(x[()])
    if isinstance(x, Mapping):
        return "{" + ", ".join(f"{told(k)}: {told(v)}" for k, v in x.items()) + "}"
    if is_dataclass(x):
        inside = (f"{f.name}={told(getattr(x, f.name))}" for f in fields(x) if f.compare)
        return f"{type(x).__name__}({', '.join(inside)})"
    if isinstance(x, list | tuple):
        return f"({', '.join(map(told, x))})"
    raise TypeError(f"{type(x)} is not told")


def _array(x: np.ndarray) -> str:
    """Tell an array: short ones element by element, others by the hash of their bytes."""
    if x.dtype.kind in "iub":
        wide = x.astype(np.uint64 if x.dtype == np.uint64 else np.int64)
    elif x.dtype.kind == "f":
        wide = x
    elif x.dtype.names:
        return told({name: x[name] for name in x.dtype.names})
    else:
        return f"{x.shape}{told(x.ravel().tolist())}"
    if x.size <= 8:
        return f"{x.shape}{told(wide.ravel().tolist())}"
    known = hashlib.sha256(np.ascontiguousarray(wide).tobytes()).hexdigest()[:16]
    kind = "integers" if x.dtype.kind in "iub" else x.dtype.name
    return f"{x.shape} {kind} {known}"


class Results:
    """What was computed, by name; an error is a result, too."""

    def __init__(self) -> None:
        self.found: dict[str, str] = {}

    def note(self, name: str, compute: Callable[[], Any]) -> None:
        """Keep what a call gives."""
        if name in self.found:
            raise ValueError(f"{name!r} is noted already")
        try:
            self.found[name] = told(compute())
        except Exception as error:
            self.found[name] = f"{type(error).__name__}: {error}"

    def write(self, path: str) -> None:
        """Write all results as JSON."""
        Path(path).write_text(json.dumps(self.found, indent=0), "utf-8")
        print(f"{len(self.found)} results in {path}")

"""Whether the parts that judge an answer are as they were: its own code may have replaced some."""

from __future__ import annotations

import inspect
import sys
from typing import Any

from gemmlab.instructions.instruction import Instruction

Parts = dict[tuple[Any, str], Any]  # (module or class, name) -> function or class

# What the simulator is made of and with.
_ROOTS = ("gemmlab", "numpy", "builtins", "ast", "inspect", "linecache", "operator")


def parts() -> Parts:
    """The functions and classes of the modules that judge, and the methods of the course's own."""
    found: Parts = {}
    for name, module in list(sys.modules.items()):
        if module is None or name.partition(".")[0] not in _ROOTS:
            continue
        for key, value in list(vars(module).items()):
            if not callable(value):
                continue
            found[module, key] = value
            if isinstance(value, Instruction):
                found |= {(value, k): v for k, v in vars(value).items()}
            if inspect.isclass(value) and value.__module__ == name and name.startswith("gemmlab"):
                found |= {(value, k): v for k, v in vars(value).items() if inspect.isroutine(v)}
    return found


def replaced(before: Parts) -> str:
    """The first of the parts that is another one now, put back with all others; empty if none."""
    other = [
        (owner, key) for (owner, key), value in before.items() if vars(owner).get(key) is not value
    ]
    for owner, key in other:
        if isinstance(owner, Instruction):
            vars(owner)[key] = before[owner, key]
        else:
            setattr(owner, key, before[owner, key])
    return next((f"{getattr(owner, '__name__', owner)}.{key}" for owner, key in other), "")

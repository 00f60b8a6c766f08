"""A module of kernels with one piece of its source exchanged: what tests must find to be wrong."""

import linecache
import sys
from pathlib import Path
from types import ModuleType

import pytest


def changed(name: str, old: str, new: str) -> ModuleType:
    """The module `name` of `gemmlab.kernels.split_k` with `new` in the place of `old`."""
    file = Path(sys.modules[f"gemmlab.kernels.split_k.{name}"].__file__)
    source = file.read_text(encoding="utf-8")
    assert source.count(old) == 1
    source, name = source.replace(old, new), f"<{name} with {new!r}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    made = ModuleType("gemmlab.kernels.split_k.changed")
    exec(compile(source, name, "exec"), made.__dict__)
    return made


def put(monkeypatch: pytest.MonkeyPatch, module: ModuleType, name: str, value: object) -> None:
    """Let `module` find `value` under a name: its own, or one of a module that it says it by."""
    home = "gemmlab.kernels."
    said = [m for m in vars(module).values() if getattr(m, "__name__", "").startswith(home)]
    modules = [m for m in said if isinstance(m, ModuleType)]
    owner = next(m for m in (module, *modules) if hasattr(m, name))
    monkeypatch.setattr(owner, name, value)

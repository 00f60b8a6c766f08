"""The listing of a Numba-CUDA kernel for a GPU that need not be here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any
from unittest import mock

from gemmlab.architectures import architecture
from gemmlab.driver import numba_cuda
from gemmlab.sass.compiling import WHEELS, assemble, disassemble, tool
from gemmlab.sass.listing import Listing

PACKAGES = {"numba_cuda": "numba-cuda", "elftools": "pyelftools"}  # by what one imports
INSTALL = 'python -m pip install "gemmlab[gpu]"'
WHERE = "Linux, Windows; no GPU is needed"


@cache
def missing() -> tuple[str, ...]:
    """What compiling a kernel and reading its code needs, and is not here."""
    packages = [name for module, name in PACKAGES.items() if find_spec(module) is None]
    tools = []
    for name in WHEELS:
        try:
            tool(name)
        except RuntimeError:
            tools.append(name)
    return (*packages, *tools)


def lacking() -> str:
    """What is missing and how to get it, in one line; empty where nothing is."""
    names = missing()
    return f"there is no {' and no '.join(names)}; {INSTALL} ({WHERE})" if names else ""


def listing(
    function: Callable,
    arguments: Sequence[Any],
    target: str = "sm_90",
    max_registers: int | None = None,
    **options: Any,
) -> Listing:
    """What Numba and ptxas make of a kernel for arguments of these types.

    options : those of `numba.cuda.jit`, such as fastmath and launch_bounds
    Raises RuntimeError where a tool is missing or refuses the code, and what Numba raises.
    """
    plain = getattr(function, "py_func", function)
    signature = tuple(_type(argument) for argument in arguments)
    return _listing(plain, signature, target, max_registers, tuple(sorted(options.items())))


@lru_cache(maxsize=256)
def _listing(
    function: Callable, signature: tuple, target: str, registers: int | None, options: tuple
) -> Listing:
    cuda = numba_cuda()
    from numba.cuda import dispatcher

    capability = architecture(target).capability
    # Numba compiles device functions for the GPU that is there: here, that is `target`.
    there = SimpleNamespace(compute_capability=capability)
    with mock.patch.object(dispatcher, "get_current_device", return_value=there):
        ptx, _ = cuda.compile_ptx(function, signature, cc=capability, **dict(options))
    cubin, taken = assemble(ptx, target, registers)
    return disassemble(cubin, taken)


def _type(argument: Any) -> Any:
    try:
        from numba.cuda.typing.typeof import Purpose, typeof
    except ImportError:
        from numba.core.typing.typeof import Purpose, typeof

    return typeof(argument, Purpose.argument)

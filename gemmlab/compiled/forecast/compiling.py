"""The listing of a Numba-CUDA kernel for a GPU that need not be here."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest import mock

from gemmlab.compiled.sass.compiling import Usage, assemble, disassemble, places
from gemmlab.compiled.sass.listing import Line, Listing
from gemmlab.device import Capability, architecture
from gemmlab.here.driver import numba_cuda
from gemmlab.here.tools import WHEELS, tool

PACKAGES = {"numba_cuda": "numba-cuda", "elftools": "pyelftools"}  # by what one imports
INSTALL = 'python -m pip install "gemmlab[forecast]"'
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


def check_tools() -> None:
    """RuntimeError that says what compiling needs and how to get it, where something is missing."""
    if lacking():
        raise RuntimeError(f"a kernel is to be compiled, and {lacking()}")


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
    return _listing(*_asked(function, arguments, target, max_registers, options))


def with_lines(
    function: Callable,
    arguments: Sequence[Any],
    target: str = "sm_90",
    max_registers: int | None = None,
    **options: Any,
) -> Listing:
    """The `listing` with the line that each of its instructions comes from.

    To name lines is a second compilation, in which some kernels get other instructions: then there
    are no lines, because the listing is what a GPU executes.
    """
    asked = _asked(function, arguments, target, max_registers, options)
    code, (cubin, taken) = _listing(*asked), _cubin(*asked, lineinfo=True)
    named, known = disassemble(cubin, taken), places(cubin)
    if [i.opcode for i in named.instructions] != [i.opcode for i in code.instructions]:
        return code
    lines = tuple(_line(asked.function, known.get(i.address)) for i in code.instructions)
    return replace(code, lines=lines)


def ptx(function: Callable, signature: tuple, capability: Capability, **options: Any) -> str:
    """The PTX of a kernel for GPUs of a compute capability; neither one nor CUDA need be here.

    signature : Numba's types; options : those of `numba.cuda.compile_ptx`
    """
    cuda = numba_cuda()
    with standing_in(capability):
        return cuda.compile_ptx(function, signature, cc=capability, **options)[0]


@contextmanager
def standing_in(capability: Capability) -> Iterator[None]:
    """A GPU of a compute capability is there for all that Numba asks while it compiles."""
    from numba.cuda import config, cuda_paths, dispatcher
    from numba.cuda.core.compiler_lock import global_compiler_lock

    # Numba compiles device functions for the GPU that is there: here, that is another.
    there = SimpleNamespace(compute_capability=capability)
    with (
        global_compiler_lock,  # what other threads compile is for the GPU that is there
        mock.patch.object(dispatcher, "get_current_device", return_value=there),
        # NVRTC, 90 MB to download, would say which capabilities there are, and compile nothing.
        mock.patch.object(config, "FORCE_CUDA_CC", capability),
        mock.patch.object(cuda_paths, "_get_nvrtc_path"),
    ):
        yield


class Asked(NamedTuple):
    """What is compiled."""

    function: Callable
    signature: tuple
    target: str
    registers: int | None
    options: tuple


def _asked(
    function: Callable, arguments: Sequence[Any], target: str, registers: int | None,
    options: Mapping[str, Any],
) -> Asked:  # fmt: skip
    check_tools()
    plain = getattr(function, "py_func", function)
    signature = tuple(_type(argument) for argument in arguments)
    return Asked(plain, signature, target, registers, tuple(sorted(options.items())))


@lru_cache(maxsize=256)
def _listing(*asked: Any) -> Listing:
    return disassemble(*_cubin(*asked))


def _cubin(
    function: Callable, signature: tuple, target: str, registers: int | None, options: tuple,
    **more: Any,
) -> tuple[bytes, Usage]:  # fmt: skip
    capability = architecture(target).capability
    return assemble(
        ptx(function, signature, capability, **dict(options), **more), target, registers
    )


def _line(function: Callable, place: tuple[str, int] | None) -> Line | None:
    """The line of a place in a file; Numba calls what belongs to no line the line 0."""
    if place is None or not place[1]:
        return None
    file, number = place
    here = Path(file) == Path(function.__code__.co_filename)
    text = linecache.getline(file, number).strip()
    return Line(number - function.__code__.co_firstlineno + 1 if here else 0, text)


def _type(argument: Any) -> Any:
    try:
        from numba.cuda.typing.typeof import Purpose, typeof
    except ImportError:
        from numba.core.typing.typeof import Purpose, typeof

    return typeof(argument, Purpose.argument)

"""What Numba's compiler makes of kernels, where it is installed, for the GPU that is simulated.

Nothing of it runs. It says what a kernel's code is, and how many registers it takes.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from gemmlab.here import compilers, numbas
from gemmlab.simt.cuda import devices
from gemmlab.simt.numbers.types import ArrayType, NumberType, Signature

__all__ = [
    "compile", "compile_all", "compile_for_current_device", "compile_ptx",
    "compile_ptx_for_current_device",
]  # fmt: skip

MISSING = (
    "Numba's compiler says that, which is not installed here; the simulated GPU runs without it"
)
OPTIONS = "debug", "lineinfo", "fastmath", "opt", "launch_bounds", "forceinline", "lto"


def _of_numba(name: str) -> Callable:
    def call(*args: Any, **options: Any) -> Any:
        if not numbas.installed():
            raise NotImplementedError(f"{name}: {MISSING}")
        capability = options.get("cc") or devices.current_device().compute_capability
        args = tuple(map(as_numbas, args))
        options = {"cc": tuple(capability)} | {k: as_numbas(v) for k, v in options.items()}
        with numbas.own() as cuda, compilers.standing_in(tuple(capability)):
            return getattr(cuda, name.replace("_for_current_device", ""))(*args, **options)

    call.__name__ = name
    call.__doc__ = f"Do what `numba.cuda.{name}` does, without a GPU."
    return call


compile = _of_numba("compile")
compile_all = _of_numba("compile_all")
compile_for_current_device = _of_numba("compile_for_current_device")
compile_ptx = _of_numba("compile_ptx")
compile_ptx_for_current_device = _of_numba("compile_ptx_for_current_device")


class Code(NamedTuple):
    """The code of a kernel for some types of arguments."""

    llvm: str
    ptx: str
    cubin: Callable[[], tuple[bytes, compilers.Usage]]


def numba_type(dtype: np.dtype | None, ndim: int, layout: str) -> Any:
    """Return Numba's type of a number, or of an array with so many dimensions."""
    types, support = numbas.part("types"), numbas.part("np.numpy_support")
    if dtype is None:
        raise NotImplementedError("tuples as arguments are not compiled here; use compile_ptx")
    number = support.from_dtype(dtype)
    return types.Array(number, ndim, layout) if ndim else number


def as_numbas(value: Any) -> Any:
    """Return Numba's own form of a type or of a signature, and other values as they are."""
    if isinstance(value, tuple):
        return tuple(map(as_numbas, value))
    if isinstance(value, NumberType):
        return numba_type(value.dtype, 0, "A")
    if isinstance(value, ArrayType):
        return numba_type(value.number.dtype, value.ndim, value.layout)
    if isinstance(value, Signature):
        result = numbas.part("types").void if value.return_type is None else value.return_type
        return as_numbas(result)(*as_numbas(value.args))
    return value


def annotated(function: Callable, signature: tuple, options: dict[str, Any]) -> str:
    """Return the source of a kernel with the types that Numba infers for its variables."""
    if not numbas.installed():
        raise NotImplementedError(MISSING)
    capability = devices.current_device().compute_capability
    return compilers.annotated(function, signature, capability, **options)


@cache
def code(function: Callable, signature: tuple, device: bool, options: tuple) -> Code:
    """Compile a kernel, or a device function, for arguments of Numba's types."""
    if not numbas.installed():
        raise NotImplementedError(MISSING)
    capability, chosen = devices.current_device().compute_capability, dict(options)
    registers = chosen.pop("max_registers", None)
    llvm, ptx = compilers.llvm_and_ptx(function, signature, capability, device, **chosen)
    target = "sm_{}{}".format(*capability)

    @cache
    def cubin() -> tuple[bytes, compilers.Usage]:
        return compilers.assemble(ptx, target, registers)

    return Code(llvm, ptx, cubin)

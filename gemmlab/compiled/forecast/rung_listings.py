"""The listings of the course's own kernels: recorded ones, and what the compiler makes of them."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from gemmlab import Gemm, Tiling, device as load_device
from gemmlab.compiled.forecast import recorded
from gemmlab.compiled.sass.compiling import listing, with_lines
from gemmlab.compiled.sass.execution.asynchronous import standing_for
from gemmlab.compiled.sass.listing import Listing
from gemmlab.device import RECORDED, Device, name_of
from gemmlab.formats import number_format
from gemmlab.instructions.tensor_copies import TensorMap
from gemmlab.kernels.kernel import Kernel, Launched

ANY = Gemm(1024, 1024, 1024)  # its rows are aligned, as those of most
_COMPILED: dict[tuple, Listing] = {}  # here


def rung_listing(
    kernel: Kernel, problem: Gemm, tiling: Tiling | None = None, device: str | Device = "h200"
) -> Listing:
    """Return the listing of a rung for a problem, a tiling and a GPU.

    Of several launches it is that of the one which multiplies. Raises what `launch_listing` raises.
    """
    target = load_device(device)
    tiling = kernel.choose(tiling)
    return launch_listing(kernel, kernel, problem, tiling, target.compute_capability)


def launch_listing(
    one: Launched, kernel: Kernel, problem: Gemm, tiling: Tiling, capability: tuple[int, int]
) -> Listing:
    """Return the listing of one launch of a kernel.

    It is the recorded one if there is one of this source, so that all machines predict alike, and
    else is compiled, once for all problems for which it is the same. Raises RuntimeError that says
    how to get the tools where they are missing then.
    """
    found = recorded.find(one, kernel, problem, tiling, capability)
    if found is not None:
        return found
    key = one, *recorded.key_of(one, kernel, problem, tiling, capability), capability
    if key not in _COMPILED:
        _COMPILED[key] = compiled_launch(one, kernel, problem, tiling, capability)
    return _COMPILED[key]


def compiled_rung(
    kernel: Kernel, problem: Gemm, tiling: Tiling, capability: tuple[int, int]
) -> Listing:
    """Compile a rung here; RuntimeError where there is no compiler."""
    return compiled_launch(kernel, kernel, problem, tiling, capability)


def compiled_launch(
    one: Launched,
    kernel: Kernel,
    problem: Gemm,
    tiling: Tiling,
    capability: tuple[int, int],
    compiled: Callable[..., Any] = listing,
) -> Any:
    """Compile one launch of a kernel here.

    compiled : how, `listing`, `with_lines` or `cubin`, whose result is returned
    """
    options = {"launch_bounds": math.prod(one.configure(problem, tiling)[1]), **one.compile(tiling)}
    return compiled(
        one.function(problem, tiling, capability), arguments(kernel, problem, tiling),
        name_of(capability), options.pop("max_registers", None), **options,
    )  # fmt: skip


def usual(kernel: Kernel, like: Gemm = ANY) -> Gemm:
    """Return `like` in the formats that a rung is shown in: float32, or float16 to float32."""
    if like.arithmetic in kernel.arithmetic:
        return like
    return replace(like, dtype="float16", out_dtype="float32")


def listings(kernel: Kernel, capability: tuple[int, int]) -> dict[recorded.Key, Listing]:
    """Compile here what is recorded of a rung: its launches in each tiling with measurements."""
    problem = usual(kernel)
    return {
        recorded.key_of(one, kernel, problem, tiling, capability): compiled_launch(
            one, kernel, problem, tiling, capability, with_lines
        )
        for tiling in kernel.tilings or (kernel.default,)
        for one in kernel.launches
    }


def arguments(kernel: Kernel, problem: Gemm, tiling: Tiling) -> tuple:
    """Make scalars, and arrays of zeros, which take no memory until they are written to."""
    alpha, beta = problem.scalars()
    a, b, c = map(np.zeros, problem.shapes, problem.memory)
    shared = (
        np.zeros(w.shape, number_format(w.dtype).memory) for w in kernel.workspace(problem, tiling)
    )
    given = (
        *(alpha, *kernel.operands(problem, tiling, a, b), beta, *kernel.result(problem, tiling, c)),
        *kernel.scratch(problem, tiling, *shared),
    )
    return tuple(standing_for(x) if isinstance(x, TensorMap) else x for x in given)


def keep(kernels: Sequence[Kernel], root: Path) -> Iterator[str]:
    """Compile kernels for the GPU with recorded times, and keep their listings; a line each."""
    capability = load_device(RECORDED).compute_capability
    for kernel in kernels:
        path = recorded.path_of(kernel, name_of(capability), root)
        made = listings(kernel, capability)
        recorded.write(path, kernel, made, recorded.tools())
        yield f"{path}: {'; '.join(dict.fromkeys(tiling for _, tiling, *_ in made))}"

"""From arrays to launches: what is chosen, and the call of it."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from gemmlab import kernels
from gemmlab.detection import detect
from gemmlab.driver import gpu_status, numba_cuda
from gemmlab.multiplication import arrays, products
from gemmlab.multiplication.choosing import FEW, Choice, kernel_for
from gemmlab.multiplication.machines import Gpu
from gemmlab.multiplication.panels import fitting
from gemmlab.multiplication.stacks import Stack
from gemmlab.tiling import Tiling


def choose(a: Any, b: Any, budget: int | None) -> Choice:
    """What multiplies two arrays, and in which panels."""
    place, sizes = arrays.check(a, b)
    return _choice(place, sizes, arrays.stack_of(a), arrays.stack_of(b), budget)


def multiply(a: Any, b: Any, budget: int | None) -> Any:
    """A·B, in an array of the same library on the same device."""
    place, sizes = arrays.check(a, b)
    if place.device is None:
        return _from_host(place, sizes, a, b, budget)
    left, right = arrays.stack_of(a), arrays.stack_of(b)
    shape = (*a.shape[:-1], b.shape[-1])
    with numba_cuda().gpus[place.device]:
        c = place.allocate(shape, "float32")
        choice = _choice(place, sizes, left, right, budget)
        products.multiply(
            Gpu(place.allocate, place.stream), choice, left, right, arrays.stack_of(c)
        )
    return c


def _from_host(
    place: arrays.Place, sizes: tuple[int, int, int, int], a: Any, b: Any, budget: int | None
) -> Any:
    """The product of arrays of the host: on the GPU that is there, or by NumPy."""
    a, b = arrays.on_host(a), arrays.on_host(b)
    choice = _choice(place, sizes, arrays.stack_of(a), arrays.stack_of(b), budget)
    if choice.kernel == "numpy":
        return arrays.as_kind(np.matmul(a, b), place)
    cuda = numba_cuda()
    there = (cuda.to_device(np.ascontiguousarray(x)) for x in (a, b))
    return arrays.as_kind(multiply(*there, budget).copy_to_host(), place)


def _choice(
    place: arrays.Place, sizes: tuple[int, int, int, int], a: Stack, b: Stack, budget: int | None
) -> Choice:
    """The kernel, its tiling and its panels."""
    (batch, m, n, k), device = sizes, detect()
    capability = device.compute_capability if gpu_status().works else None
    kernel, why = kernel_for(capability, 2 * batch * m * n * k)
    if place.device is None and capability and 2 * batch * m * n * k < FEW:
        kernel, why = "numpy", "the operands are small and on the host: NumPy multiplies there"
    layout = "".join("nt"[stack.is_transposed] for stack in (a, b))
    bytes_of = partial(products.workspace_bytes, kernel, layout, k)
    panels = fitting((batch, m, n), bytes_of, budget)
    tiling = {
        "tcec_batched": kernels.tcec_split.default,
        "tcec_registers": kernels.tcec_registers.default,
        "pipelined": _tiling_for_fp32(m, n, device.sms),
    }.get(kernel)
    return Choice(kernel, why, tiling, batch, m, n, k, layout, panels, bytes_of(*panels))


def _tiling_for_fp32(m: int, n: int, sms: int) -> Tiling:
    """The largest tile of `pipelined` of which every SM has one, or its smallest."""
    tilings = sorted(kernels.pipelined.tilings, key=lambda t: -t.block[0] * t.block[1])
    enough = (t for t in tilings if -(-m // t.block[0]) * -(-n // t.block[1]) >= sms)
    return next(enough, tilings[-1])

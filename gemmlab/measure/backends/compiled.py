"""Compiling kernels for this machine's GPU: their launch, and the resources that they take."""

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from gemmlab import Device, Gemm, Tiling
from gemmlab.instructions import host
from gemmlab.kernels.kernel import Kernel, Launched
from gemmlab.model.occupancy import check_block, resident_blocks


class Launch(NamedTuple):
    """A function of (alpha, A, B, beta, C, …) that launches a kernel, and what it takes.

    resources : of the launch that multiplies
    """

    call: Callable
    resources: dict[str, int]


def launch(
    kernel: Kernel, problem: Gemm, tiling: Tiling | None, device: Device, arguments: Sequence[Any]
) -> Launch:
    """Compile `kernel` for `arguments`, (alpha, A, B, beta, C, …) with arrays on the GPU.

    Raises ValueError for a block or for shared memory that `device` cannot give, RuntimeError
    where CuPy is needed and missing.
    """
    capability = device.compute_capability
    if kernel.library:
        try:
            return Launch(kernel.function(problem, tiling, capability), {})
        except ImportError:
            raise RuntimeError(
                f"{kernel.name} needs CuPy, which is not installed; pip install cupy-cuda13x"
            ) from None
    found = [_launch(one, problem, tiling, device, arguments) for one in kernel.launches]
    multiplies = found[len(kernel.before)]
    if len(found) == 1:
        return multiplies

    def in_turn(*arguments: Any) -> None:
        for one in found:
            one.call(*arguments)

    return Launch(in_turn, multiplies.resources)


def _launch(
    one: Launched, problem: Gemm, tiling: Tiling, device: Device, arguments: Sequence[Any]
) -> Launch:
    grid, block = one.launch(problem, tiling, device)
    threads, shared = math.prod(block), one.dynamic_shared_bytes(problem, tiling)
    check_block(device, threads, shared)
    variant = one.variant(problem, device.compute_capability)
    options = {"launch_bounds": threads, **one.compile(tiling)}
    dispatcher = _dispatcher(one.build, tiling.unsplit, _items(variant), _items(options))
    compiled = dispatcher.compile(tuple(map(dispatcher.typeof_pyval, arguments)))
    loaded = host.loaded(compiled)
    static = loaded.static_shared_bytes
    check_block(device, threads, static + shared)
    if shared:
        host.allow_shared(loaded, device, device.shared_bytes_per_block - static)
    resources = _resources(loaded, threads, shared, device)
    if one.cluster > 1:
        call = host.in_clusters(dispatcher, compiled, grid, block, shared, one.cluster)
        return Launch(call, resources)
    return Launch(dispatcher[grid, block, 0, shared], resources)


def _items(options: Any) -> tuple:
    return tuple(sorted(options.items()))


@lru_cache(maxsize=64)
def _dispatcher(build: Callable, tiling: Tiling, variant: tuple, options: tuple) -> Callable:
    """Hand the compiler the function that `build` makes; it is made once for these arguments."""
    return host.cuda().jit(**dict(options))(build(tiling, **dict(variant)))


def _resources(loaded: host.Loaded, threads: int, shared: int, device: Device) -> dict[str, int]:
    """Tell what the compiler used and how many blocks an SM holds, by the names of `RESOURCES`."""
    static, registers = loaded.static_shared_bytes, loaded.registers
    blocks = loaded.resident(threads, shared)
    return {
        "registers": registers,
        "local_bytes": loaded.local_bytes,
        "static_shared_bytes": static,
        "dynamic_shared_bytes": shared,
        "threads": threads,
        "blocks_per_sm": blocks,
        "predicted_blocks_per_sm": resident_blocks(device, threads, static + shared, registers),
        "warps_per_sm": blocks * -(-threads // device.warp_size),
    }

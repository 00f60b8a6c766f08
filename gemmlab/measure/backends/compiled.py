"""Compiling kernels for this machine's GPU: their launch, and the resources that they take."""

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from gemmlab import Device, Gemm, Tiling
from gemmlab.here.driver import numba_cuda
from gemmlab.kernels.kernel import Dim, Kernel, Launched
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
    static = compiled.shared_mem_per_block
    check_block(device, threads, static + shared)
    function = compiled.library.get_cufunc()
    if shared:
        allow_shared(function, device, device.shared_bytes_per_block - static)
    resources = _resources(compiled, function, threads, shared, device)
    if one.cluster > 1:
        return Launch(in_clusters(compiled, grid, block, shared, one.cluster), resources)
    return Launch(dispatcher[grid, block, 0, shared], resources)


def in_clusters(compiled: Any, grid: Dim, block: Dim, shared: int, cluster: int) -> Callable:
    """Return the function that launches a compiled kernel in clusters, neighbours in x.

    Numba's own launches have no clusters; this one is made of what they are made of.
    """
    from cuda.core import LaunchConfig, Stream, launch

    stream, kernel = Stream.from_handle(0), compiled.library.get_cufunc().kernel
    across, *others = grid
    config = LaunchConfig(
        grid=(across // cluster, *others), cluster=cluster, block=block, shmem_size=shared
    )

    def call(*arguments: Any) -> None:
        prepared: list[Any] = []
        back: list[Callable] = []
        for kind, value in zip(compiled.argument_types, arguments, strict=True):
            compiled._prepare_args(kind, value, stream, back, prepared)
        launch(stream, config, kernel, *prepared)
        for bring in back:
            bring()

    return call


def _items(options: Any) -> tuple:
    return tuple(sorted(options.items()))


@lru_cache(maxsize=64)
def _dispatcher(build: Callable, tiling: Tiling, variant: tuple, options: tuple) -> Callable:
    """Hand Numba the function that `build` makes; it is made once for these arguments."""
    return numba_cuda().jit(**dict(options))(build(tiling, **dict(variant)))


def allow_shared(function: Any, device: Device, most: int) -> None:
    """Let a compiled kernel be launched with `most` bytes of dynamic shared memory, not 48 KiB.

    Source: CUDA Driver API, cuKernelSetAttribute.
    """
    from cuda.bindings import driver

    attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    (status,) = driver.cuKernelSetAttribute(attribute, most, function.handle, function.device.id)
    if status != driver.CUresult.CUDA_SUCCESS:
        raise ValueError(
            f"{device.title} does not give a block {most} B of dynamic shared memory "
            f"({status.name}), although {device.shared_bytes_per_block} B a block are its limit"
        )


def _resources(
    compiled: Any, function: Any, threads: int, shared: int, device: Device
) -> dict[str, int]:
    """Tell what the compiler used and how many blocks an SM holds, by the names of `RESOURCES`."""
    static, registers = compiled.shared_mem_per_block, compiled.regs_per_thread
    blocks = function.kernel.occupancy.max_active_blocks_per_multiprocessor(threads, shared)
    return {
        "registers": registers,
        "local_bytes": compiled.local_mem_per_thread,
        "static_shared_bytes": static,
        "dynamic_shared_bytes": shared,
        "threads": threads,
        "blocks_per_sm": blocks,
        "predicted_blocks_per_sm": resident_blocks(device, threads, static + shared, registers),
        "warps_per_sm": blocks * -(-threads // device.warp_size),
    }

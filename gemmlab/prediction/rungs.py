"""The time of the course's own kernels, from their compiled code."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gemmlab.architectures import name_of
from gemmlab.device import Device
from gemmlab.device import device as load_device
from gemmlab.formats import number_format
from gemmlab.instructions.tensor_maps import TensorMap
from gemmlab.kernels.kernel import Kernel, Launch, Launched
from gemmlab.prediction import recorded
from gemmlab.prediction.compiling import listing, with_lines
from gemmlab.prediction.periods import longer, repeats
from gemmlab.prediction.time import (
    ALL,
    Executed,
    Forecast,
    busiest,
    execute,
    forecast,
    known_device,
)
from gemmlab.prediction.whole_gpu import dram_time
from gemmlab.problem import Gemm
from gemmlab.sass.execution.asynchronous import standing_for
from gemmlab.sass.listing import Listing
from gemmlab.sm.effects import Effects
from gemmlab.tiling import Tiling

ANY = Gemm(1024, 1024, 1024)  # its rows are aligned, as those of most
SHORT = 8  # steps along k after which a loop is in its stride
SIMULATED = 2, 5  # periods: blocks are in or out of step by then
_LISTINGS: dict[tuple, Listing] = {}  # that were compiled here
ALIGNED = 32  # elements: rows of A whose lengths differ by multiples begin at sectors alike


def rung_listing(
    kernel: Kernel, problem: Gemm, tiling: Tiling | None = None, device: str | Device = "h200"
) -> Listing:
    """The listing of a rung for a problem, a tiling and a GPU.

    Of several launches it is that of the one which multiplies. Raises what `launch_listing` raises.
    """
    target = load_device(device)
    tiling = kernel.choose(tiling)
    return launch_listing(kernel, kernel, problem, tiling, target.compute_capability)


def launch_listing(
    one: Launched, kernel: Kernel, problem: Gemm, tiling: Tiling, capability: tuple[int, int]
) -> Listing:
    """The listing of one launch of a kernel.

    It is the recorded one if there is one of this source, so that all machines predict alike, and
    else is compiled, once for all problems for which it is the same. Raises RuntimeError that says
    how to get the tools where they are missing then.
    """
    found = recorded.find(one, kernel, problem, tiling, capability)
    if found is not None:
        return found
    key = one, *recorded.key_of(one, kernel, problem, tiling, capability), capability
    if key not in _LISTINGS:
        _LISTINGS[key] = compiled_launch(one, kernel, problem, tiling, capability)
    return _LISTINGS[key]


def compiled_rung(
    kernel: Kernel, problem: Gemm, tiling: Tiling, capability: tuple[int, int]
) -> Listing:
    """What the compiler that is here makes of a rung; RuntimeError where there is none."""
    return compiled_launch(kernel, kernel, problem, tiling, capability)


def compiled_launch(
    one: Launched,
    kernel: Kernel,
    problem: Gemm,
    tiling: Tiling,
    capability: tuple[int, int],
    compiled: Callable[..., Listing] = listing,
) -> Listing:
    """What it makes of one launch of a kernel.

    compiled : how, `listing` or `with_lines`
    """
    options = {
        "launch_bounds": math.prod(one.launch(problem, tiling)[1]),
        **one.compile(tiling),
    }
    return compiled(
        one.function(problem, tiling, capability), _arguments(kernel, problem, tiling),
        name_of(capability), options.pop("max_registers", None), **options,
    )  # fmt: skip


def usual(kernel: Kernel, like: Gemm = ANY) -> Gemm:
    """`like` in the formats that a rung is shown in: float32, or float16 to float32."""
    if like.arithmetic in kernel.arithmetic:
        return like
    return replace(like, dtype="float16", out_dtype="float32")


def listings(kernel: Kernel, capability: tuple[int, int]) -> dict[recorded.Key, Listing]:
    """What is recorded of a rung, compiled here: its launches in each tiling with measurements."""
    problem = usual(kernel)
    return {
        recorded.key_of(one, kernel, problem, tiling, capability): compiled_launch(
            one, kernel, problem, tiling, capability, with_lines
        )
        for tiling in kernel.tilings or (kernel.default,)
        for one in kernel.launches
    }


def predict_rung(
    problem: Gemm,
    device: str | Device,
    kernel: Kernel,
    tiling: Tiling | None = None,
    effects: Effects = ALL,
) -> Forecast:
    """Predict the time of a rung of the ladder from its compiled code.

    The blocks of a product are alike, so that one round of resident blocks is executed and stands
    for all. Where k is long two shorter products are executed, whose difference is a period of the
    loop: some more periods are simulated, beyond which each one takes the same. The first round
    waits for device memory, if L2 keeps the matrices for the later ones. What further launches
    take is added, and the time from one to the next.
    Raises what `predict` and `predict_time` raise.
    """
    target = known_device(device)
    tiling = kernel.choose(tiling, problem, target)
    found = forecast_rung(problem, execute_rung(problem, target, kernel, tiling), effects)
    others = [forecast_other(problem, target, kernel, tiling, one, effects)
              for one in kernel.launches if one is not kernel]  # fmt: skip
    return replace(found, others=tuple(others))


def forecast_other(
    problem: Gemm,
    device: Device,
    kernel: Kernel,
    tiling: Tiling,
    one: Launch,
    effects: Effects = ALL,
) -> Forecast:
    """What a launch takes before or after the one that multiplies; `launch` is the time between.

    Of all arrays it has to do with those alone that its blocks access: a split with A, B and the
    workspace, a sum with the workspace and C. What the launch before it wrote is in L2, if that
    holds it.
    """
    code = launch_listing(one, kernel, problem, tiling, device.compute_capability)
    executed = execute(
        code, device, *one.launch(problem, tiling), *_arguments(kernel, problem, tiling),
        shared_bytes=one.dynamic_shared_bytes(problem, tiling),
    )  # fmt: skip
    executed = replace(executed, footprint=executed.touched)
    found = forecast(executed, cold=one in kernel.before, effects=effects)
    return replace(found, launch=device.launch_interval or found.launch)


def execute_rung(
    problem: Gemm, device: str | Device, kernel: Kernel, tiling: Tiling | None = None
) -> dict[int, Executed]:
    """Execute one round of blocks: k -> what was done, for `problem.k` or for two that are shorter.

    Of several launches it is the one that multiplies. Raises what `predict_rung` raises.
    """
    target = known_device(device)
    tiling = kernel.choose(tiling, problem, target)
    kernel.check_problem(problem)
    code = rung_listing(kernel, problem, tiling, target)
    period = _period(kernel, tiling) * _parts(problem, kernel, tiling)
    shorter = [problem.k % period + period * n for n in (1, 2)]
    depths = shorter if problem.k > shorter[1] else [problem.k]
    return {k: execute_whole(replace(problem, k=k), code, target, kernel, tiling) for k in depths}


def execute_whole(
    problem: Gemm, code: Listing, device: Device, kernel: Kernel, tiling: Tiling
) -> Executed:
    """Execute one round of blocks of a product, with all of its k."""
    executed = execute(
        code, device, *kernel.launch(problem, tiling), *_arguments(kernel, problem, tiling),
        rounds=1,
        first=longest_share(problem, kernel, tiling) % device.sms,
        shared_bytes=kernel.dynamic_shared_bytes(problem, tiling),
    )  # fmt: skip
    return replace(executed, footprint=footprint(problem, kernel, tiling))


def longest_share(problem: Gemm, kernel: Kernel, tiling: Tiling) -> int:
    """The block that takes longest: where equal shares of all steps end anywhere, one of two tiles.

    It begins twice and stores twice. Where no share has parts of two tiles all blocks are alike.

    >>> from gemmlab import kernels
    >>> tiling = Tiling(block=(128, 128, 8), warp=(64, 32), thread=(8, 8), stages=3, split=7)
    >>> longest_share(Gemm(256, 256, 4096), kernels.stream_k, tiling)
    3
    """
    if not kernel.splits or kernel.work(problem, tiling).pieces:
        return 0
    blocks, tiles = math.prod(kernel.launch(problem, tiling)[0]), math.prod(tiling.grid(problem))

    def divided(block: int) -> int:
        """How far inside of its share a tile ends, in parts of a tile."""
        end = -block * tiles % blocks
        return max(0, min(end, tiles - end))

    return max(range(blocks), key=divided)


def footprint(problem: Gemm, kernel: Kernel, tiling: Tiling) -> int:
    """Bytes of all arrays, the workspace among them."""
    shared = kernel.workspace(problem, tiling)
    return sum(problem.array_bytes) + sum(
        math.prod(w.shape) * number_format(w.dtype).bytes for w in shared
    )


def forecast_rung(
    problem: Gemm, executed: Mapping[int, Executed], effects: Effects = ALL
) -> Forecast:
    """What `execute_rung` says of a problem."""
    runs = _simulated(problem, executed)
    share, device = (getattr(next(iter(runs.values())), name) for name in ("share", "device"))
    found = [forecast(run, effects=effects, most=share.blocks) for run in runs.values()]
    most = busiest(device, share, _ends(found, list(runs), problem.k))
    if most != share.blocks:
        found = [forecast(run, effects=effects, most=most) for run in runs.values()]
    times = {
        name: extended([f.times[name] for f in found], list(runs), problem.k)
        for name in found[-1].times
    }
    times["dram"] = dram_time(moved(problem), device)
    return replace(found[-1], times=times)


def _ends(found: Sequence[Forecast], sizes: list[int], k: int) -> np.ndarray:
    """When the blocks of an SM end at `k`, from runs that are shorter."""
    ends = [np.sort(f.result.block_ends) for f in found]
    return extended(ends, sizes, k)


def _simulated(problem: Gemm, executed: Mapping[int, Executed]) -> Mapping[int, Executed]:
    """The products to simulate by k: what was executed, with more periods where it has two.

    It is the problem itself where that has no more periods than `SIMULATED`. What was executed
    stays where a longer loop does other things than a shorter one.
    """
    if len(executed) == 1 or not repeats(*executed.values()):
        return executed
    (k, short), (after, long) = executed.items()
    wanted = (problem.k - k) // (after - k)
    counts = SIMULATED if wanted > max(SIMULATED) else (wanted,)
    return {k + (after - k) * n: longer(short, long, n) for n in counts}


def moved(problem: Gemm) -> int:
    """Bytes to move where each array is moved once, and C twice where it is read, too."""
    return problem.bytes + (problem.array_bytes[2] if problem.beta else 0)


def extended(values: list, sizes: list[int], k: int) -> Any:
    """The value at `k` on the line through those at `sizes`; the one there is if it is alone."""
    if len(values) == 1:
        return values[0]
    return values[0] + (values[1] - values[0]) * (k - sizes[0]) / (sizes[1] - sizes[0])


def _period(kernel: Kernel, tiling: Tiling) -> int:
    """Elements along k after which a loop does the same again: at least `SHORT` steps, mostly."""
    step = math.lcm(tiling.block[2] * kernel.period(tiling), ALIGNED)
    return step * max(1, SHORT * tiling.block[2] // step)


def _parts(problem: Gemm, kernel: Kernel, tiling: Tiling) -> int:
    """Steps along k for which blocks that divide it get a whole number more each."""
    if not kernel.splits:
        return 1
    pieces = kernel.work(problem, tiling).pieces or math.prod(kernel.launch(problem, tiling)[0])
    return pieces // math.gcd(pieces, math.prod(tiling.grid(problem)))


def _arguments(kernel: Kernel, problem: Gemm, tiling: Tiling) -> tuple:
    """Scalars and arrays of zeros, which take no memory until they are written to."""
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

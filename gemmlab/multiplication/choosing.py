"""Which kernel multiplies: the one that is predicted to take least time on this GPU.

Arrays of PyTorch and CuPy have a library of their own, cuBLAS, which multiplies unless Tensor Cores
are known to take less time: what they are predicted to take, and some more, is less than the
fastest SGEMM would. Thin, small and shallow products are the library's.

A call takes the longer of two times: what the GPU is predicted to take, and what Python takes to
queue it all, because a program that multiplies again and again waits for the slower of the two.
Where memory is short, panels of C are computed one after the other. k is never cut: the result has
the same bits, whatever the panels.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from gemmlab import kernels
from gemmlab.device import Device, device as load_device
from gemmlab.kernels.batched.fewer_products import WHOLE, has_low
from gemmlab.kernels.kernel import Kernel
from gemmlab.kernels.tensor_core.shared.tma_tiles import DEPTH
from gemmlab.model import predict
from gemmlab.problem import Gemm
from gemmlab.tiling import Tiling

WGMMA = (9, 0)  # the one compute capability that has `wgmma`
MMA = (8, 0)  # from which on `mma.sync` multiplies m16n8k16 and `cp.async` copies
NARROW = 64  # columns of a tile, so that a small product has one for each SM
# Beside the launch that multiplies: tensor maps; zeros for the exponents of A and of B, and two
# launches for their scales, each; one launch for lone lines.
BESIDE, OF_AN_OPERAND = 8, 3
# Of Python and the driver, for a call that comes again, whatever it queues: a graph has it all.
# Only calls of some ten microseconds depend on it.
CALL = 30e-6
# Of k, from which on Tensor Cores err no more than a chain of FMAs: 1.14 times at 32, 1.3 at 16, by
# the emulator of what they compute.
LEAST_K = 32
FEW = 2 * 1024**3  # operations, from which on an H200's Tensor Cores take less time
MOST_BLOCKS = 65_535  # of a grid along y and z

# What a product takes by `wgmma` is the sum of these, as an H100 took it (benchmarks/matmul.py): a
# launch waits for the one before it. `model.predict`, which takes the longest of them, promised
# half of it where operands are thin.
COMPUTES = 1.45  # times as long as Tensor Cores at their peak, for whole turns of all SMs
NARROW_COMPUTES = 1.4  # times that, in tiles of 64 columns
SPLITS = 1.55  # times as long as a copy
TILE = 3.1e-6  # for a turn: C is stored, and nothing is multiplied
# The fastest SGEMM reached 0.752 of the peak of FP32 units there, of 110 products.
LIBRARY = 0.8
# Times what is predicted, and beside it in a call that nobody follows, where a graph is launched.
SURE, ALONE = 1.1, 30e-6
# Times what is predicted where nothing was measured, or more parts than these took up to 1.8 times
# as long: half more, and a library may reach the peak of other GPUs.
UNMEASURED, MEASURED_PARTS = 1.5 / LIBRARY, 8

# Of k in parts: so many at most, of so much at least, where that is worth a launch that adds.
MOST_PARTS, LEAST_PART, WORTH = 64, 1024, 0.8
ABOUT = 1.1  # as soon: fewer parts are then better, since each one's sums are written and read
MANY_TILES = 4  # for each SM: they take turns so often that they end together
SPLIT_BYTES, HALF = 8, 2  # of an element that is split: read once, two halves written once
ITEM = 4  # bytes of a float32


@dataclass(frozen=True)
class Choice:
    """`matmul` does this for two operands.

    kernel : "tcec_batched", "tcec_registers" or "pipelined", of `gemmlab.kernels`, or "numpy", or
        "library", the one that owns the arrays
    why : in one line
    tiling : of the kernel; None for NumPy and a library
    batch, m, n, k : of the product; layout : how operands are stored, see `Gemm.layout`
    panels : products, rows and columns of C that are computed at a time
    workspace_bytes : memory beside A, B and C [B]
    parts : of k, summed by themselves and then added, so that all SMs have work
    products : of halves: 3, or fewer, where less is asked for
    """

    kernel: str
    why: str
    tiling: Tiling | None
    batch: int
    m: int
    n: int
    k: int
    layout: str
    panels: tuple[int, int, int]
    workspace_bytes: int = 0
    parts: int = 1
    products: int = WHOLE


# What multiplies, by what decides about it: class, format, shape and device of both operands, and
# what else is asked for. To know a kind again takes a microsecond, to check operands ten.
DECIDED: dict[tuple, Callable[[Any, Any], Any]] = {}
# What multiplies tensors of PyTorch's own classes, once one of a GPU has been multiplied: it looks
# at less where multiplications are few.
OF_TENSORS: dict[type, Callable[[Any, Any, int | None, int], Any]] = {}


@dataclass(frozen=True)
class Way:
    """A kernel with a tiling, the time that it is predicted to take, and what is queued for it.

    gpu : the predicted time of the kernel, without what is between launches; None where the rates
        of the GPU are not known [s]
    between : from one launch to the next [s]
    sure : times the time that it takes for sure
    """

    kernel: str
    tiling: Tiling
    gpu: float | None
    queued: int
    between: float
    sure: float = UNMEASURED

    @property
    def seconds(self) -> float:
        """The time of a call, where calls follow each other [s]."""
        return max((self.gpu or 0.0) + self.queued * self.between, CALL)

    @property
    def microseconds(self) -> str:
        """The time as one reads it."""
        return f"{self.seconds * 1e6:.3g} µs"


def cost(way: Way) -> tuple[float, float]:
    """Compare ways by the time of a call, then by the GPU's where Python's is the same."""
    return way.seconds, way.gpu or 0.0


def fastest(
    device: Device, sizes: tuple[int, int, int, int], layout: str, library: str | None = None,
    is_split: bool = False, products: int = WHOLE,
) -> tuple[str, Tiling | None, str]:  # fmt: skip
    """Return the name of a kernel, its tiling and why.

    sizes : batch, m, n and k; library : that multiplies where nothing is known to be faster
    is_split : B has been split already; products : of halves
    """
    told = "compute capability {}.{}".format(*device.compute_capability)
    ways = by_tensor_cores(device, sizes, layout, is_split, products)
    tensor = min(ways, key=cost, default=None)
    if library and (why := not_sure(device, sizes, tensor)):
        return "library", None, f"{library} multiplies by cuBLAS: {why}"
    units = min(by_units(device, sizes, layout), key=cost, default=None)
    if not units and not tensor:
        raise ValueError("{1}×{2}×{3} has more tiles than a launch has blocks".format(*sizes))
    if not tensor:
        return units.kernel, units.tiling, f"{lacking(device, sizes)}: FP32 units multiply"
    if units and (units.gpu is None or tensor.gpu is None):
        few = device.compute_capability != WGMMA or 2 * math.prod(sizes) < FEW
        chosen, what = (units, "FP32 units") if few else (tensor, "Tensor Cores")
        why = f"how fast the Tensor Cores of this GPU are is not known: by {told}, {what} multiply"
        return chosen.kernel, chosen.tiling, why
    times = f"predicted {tensor.microseconds}"
    if units:
        times += f", by FP32 units {units.microseconds}"
        if units.seconds <= tensor.seconds:
            return units.kernel, units.tiling, f"Tensor Cores take longer: {times}"
    how = {
        "tcec_batched": "wgmma: operands are split beforehand",
        "tcec_registers": "mma.sync: operands are split in registers",
    }[tensor.kernel]
    return tensor.kernel, tensor.tiling, f"{told} has {how}; {times}"


def lacking(device: Device, sizes: tuple[int, int, int, int]) -> str:
    """Say why no Tensor Core multiplies."""
    told = "compute capability {}.{}".format(*device.compute_capability)
    if device.compute_capability < MMA:
        return f"{told} has no m16n8k16"
    if sizes[3] < LEAST_K:
        return f"a sum of {sizes[3]} is rounded less by FP32 units"
    return f"{told} has no room for tiles of parts"


def not_sure(device: Device, sizes: tuple[int, int, int, int], tensor: Way | None) -> str:
    """Say why it is not known that Tensor Cores take less time than a library; empty if it is."""
    if tensor is None:
        return lacking(device, sizes)
    at_best = of_library(device, sizes)
    if at_best is None or tensor.gpu is None:
        return "how fast the Tensor Cores of this GPU are is not known"
    if max(tensor.sure * tensor.seconds, tensor.seconds + ALONE) <= at_best:
        return ""
    return (
        f"Tensor Cores are not known to be faster (predicted {tensor.microseconds}, FP32 units at "
        f"best {at_best * 1e6:.3g} µs)"
    )


def few(device: Device) -> float:
    """Return the number of multiplications below which no product is known to be a Tensor Core's.

    A library that is to be slower takes longer than the shortest call of Tensor Cores, and what is
    added to that. Memory never holds it up for longer: the split reads and writes more.
    """
    if device.compute_capability < MMA or of_library(device, (1, 1, 1, 1)) is None:
        return math.inf
    return (CALL + ALONE) * LIBRARY * device.peak["float32"] / 2


def of_library(device: Device, sizes: tuple[int, int, int, int]) -> float | None:
    """Return what a library's product takes at least; None where a rate is not known [s]."""
    batch, m, n, k = sizes
    if "float32" not in device.peak or not device.dram_bandwidth:
        return None
    moved = ITEM * batch * (m * k + k * n + m * n)
    multiplied = 2 * batch * m * n * k / (LIBRARY * device.peak["float32"])
    return max(multiplied, moved / device.dram_bandwidth)


def by_units(device: Device, sizes: tuple[int, int, int, int], layout: str) -> Iterator[Way]:
    """Multiply by *pipelined*, one product after the other."""
    batch, *size = sizes
    problem, kernel = Gemm(*size, layout=layout), kernels.pipelined
    for tiling, one in possible(device, kernel, problem, kernel.tilings):
        yield Way("pipelined", tiling, one and batch * one, batch, interval(device))


def by_tensor_cores(
    device: Device, sizes: tuple[int, int, int, int], layout: str, is_split: bool = False,
    products: int = WHOLE,
) -> Iterator[Way]:  # fmt: skip
    """Multiply all products in a launch by `wgmma`, or one after the other by `mma.sync`."""
    batch, m, n, k = sizes
    if device.compute_capability < MMA or k < LEAST_K:
        return
    if device.compute_capability == WGMMA:
        yield from by_warpgroups(device, sizes, layout, is_split, products)
        return
    kernel = kernels.tcec_registers
    tilings = [replace(kernel.default, stages=n) for n in range(kernel.default.stages, 1, -1)]
    for tiling, one in possible(device, kernel, Gemm(m, n, k, layout=layout), tilings):
        yield Way(kernel.name, tiling, one and batch * one, batch + BESIDE, interval(device))


def by_warpgroups(
    device: Device, sizes: tuple[int, int, int, int], layout: str, is_split: bool, products: int
) -> Iterator[Way]:
    """Multiply all products, and all parts of k, in a launch by `wgmma`.

    Launches follow each other, so that their times add up.
    """
    kernel = kernels.tcec_split
    own = kernel.choose(None, Gemm(*sizes[1:]), device)
    queued = 1 + BESIDE - (OF_AN_OPERAND if is_split else 0)
    for columns in (own.block[1], NARROW):
        tiling = replace(own, block=(own.block[0], columns, own.block[2]))
        parts = parts_of(tiling, sizes, device.sms)
        # Blocks stay, so that the grid is never too large; the tiling may have no room.
        for _, known in possible(device, kernel, Gemm(1, 1, 1, layout=layout), [tiling]):
            gpu = known and by_launches(device, sizes, tiling, parts, is_split, products)
            sure = SURE if parts <= MEASURED_PARTS else UNMEASURED
            yield Way("tcec_batched", tiling, gpu, queued + (parts > 1), interval(device), sure)


def by_launches(
    device: Device, sizes: tuple[int, int, int, int], tiling: Tiling, parts: int, is_split: bool,
    products: int,
) -> float:  # fmt: skip
    """Add up what the launches of a product take: the split, turns of tiles, and C [s]."""
    (batch, m, n, k), (bm, bn, _) = sizes, tiling.block
    turns = -(-parts * batch * -(-m // bm) * -(-n // bn) // device.sms)
    flops = products * 2 * turns * device.sms * bm * bn * length_of(k, parts)
    computes = COMPUTES * (NARROW_COMPUTES if bn == NARROW else 1)
    of_a, of_b = (SPLIT_BYTES - (0 if has_low(products, side) else HALF) for side in (0, 1))
    moved = SPLITS * batch * k * (of_a * m + (0 if is_split else of_b * n))
    moved += ITEM * batch * m * n * (1 if parts == 1 else 2 * parts + 1)
    copies = device.dram_copy_bandwidth or device.dram_bandwidth
    return computes * flops / device.peak["float16"] + moved / copies + TILE * turns


def parts_of(tiling: Tiling, sizes: tuple[int, int, int, int], sms: int) -> int:
    """Say in how many parts k is summed: so many that the SMs, which take turns, end together.

    With p parts the last SM is done after ⌈p·tiles / SMs⌉ of them, each a p-th of k.

    >>> tiling = Tiling((128, 128, 64))
    >>> [parts_of(tiling, (1, n, n, 8192), 132) for n in (256, 1024, 4096)]
    [8, 2, 1]
    """
    (batch, m, n, k), (bm, bn, _) = sizes, tiling.block
    tiles = batch * -(-m // bm) * -(-n // bn)
    if tiles >= MANY_TILES * sms:
        return 1

    def turns(parts: int) -> float:
        return -(-parts * tiles // sms) / parts

    possible = range(1, max(1, min(MOST_PARTS, k // LEAST_PART)) + 1)
    least = min(map(turns, possible))
    if least > WORTH * turns(1):
        return 1
    parts = next(parts for parts in possible if turns(parts) <= ABOUT * least)
    return -(-k // length_of(k, parts))  # none is empty


def length_of(k: int, parts: int) -> int:
    """Return how much of k a part has at most: a multiple of what is copied at a time."""
    return -(-k // (parts * DEPTH)) * DEPTH


def possible(
    device: Device, kernel: Kernel, problem: Gemm, tilings: Iterable[Tiling]
) -> Iterator[tuple[Tiling, float | None]]:
    """The tilings that a GPU has shared memory and blocks for, and predicted times [s].

    These are None for a GPU whose rate is not known.
    """
    for tiling in tilings:
        (_, *further), _ = kernel.launch(problem, tiling, device)
        if max(further) > MOST_BLOCKS:
            continue
        if kernel.shared_bytes(problem, tiling) > device.shared_bytes_per_block:
            continue
        try:
            yield tiling, predict(problem, device, kernel, tiling).seconds
        except ValueError:
            yield tiling, None


def interval(device: Device) -> float:
    """Tell the time from one launch to the next [s]; an H200's where it was not measured."""
    return device.launch_interval or load_device("h200").launch_interval


SIDE = 128  # rows and columns of panels are multiples of it, where they are not all
MOST = 32_768  # products of one launch: a grid has 65,535 blocks along z


def fitting(
    sizes: tuple[int, int, int], workspace: Callable[[int, int, int], int], budget: int | None
) -> tuple[int, int, int]:
    """Products, rows and columns of a panel whose workspace [B] is within the budget.

    sizes : batch, m and n; workspace : (products, rows, columns) -> bytes
    Raises ValueError for a budget that is too small for any panel.
    """
    batch, rows, columns = min(sizes[0], MOST), *sizes[1:]
    while budget is not None and workspace(batch, rows, columns) > budget:
        if batch > 1:
            batch = -(-batch // 2)
        elif max(rows, columns) <= SIDE:
            raise ValueError(
                f"workspace_bytes={budget} is too little; the smallest panel takes "
                f"{workspace(batch, rows, columns)} B"
            )
        elif rows >= columns:
            rows = _half(rows)
        else:
            columns = _half(columns)
    return batch, rows, columns


def _half(size: int) -> int:
    """Halve a size, to a multiple of `SIDE`."""
    return max(SIDE, -(-size // (2 * SIDE)) * SIDE)


def steps(size: int, each: int) -> Iterator[tuple[int, int]]:
    """Cut a size into parts, each with its begin and end.

    >>> list(steps(300, 128))
    [(0, 128), (128, 256), (256, 300)]
    """
    for begin in range(0, size, each):
        yield begin, min(begin + each, size)

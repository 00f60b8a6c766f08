"""Tile and wave quantization: work comes in whole tiles, and tiles come in whole waves.

Every formula takes a `Gemm` or a `Gemms`, whose sizes are arrays: a sawtooth over n is one call.
Source: NVIDIA Matrix Multiplication Background User's Guide, "Dimension Quantization Effects".
"""

from dataclasses import dataclass
from typing import Any

from gemmlab import Device
from gemmlab.arguments import whole_number
from gemmlab.formats import number_format
from gemmlab.model.occupancy import waves
from gemmlab.problem import Product

Tile = tuple[int, int]  # (bm, bn), the part of C that a thread block computes


@dataclass(frozen=True, eq=False)
class Quantization:
    """The tiles of one product, or of many, fill C and the processors of a device.

    per_sm : tiles that an SM computes side by side; split : parts of k, each with tiles of its own
    """

    problem: Product
    device: Device
    tile: Tile
    per_sm: int
    split: int = 1

    @property
    def down(self) -> Any:
        """Tiles along m, ⌈m/bm⌉."""
        return -(-self.problem.m // self.tile[0])

    @property
    def across(self) -> Any:
        """Tiles along n, ⌈n/bn⌉."""
        return -(-self.problem.n // self.tile[1])

    @property
    def tiles(self) -> Any:
        """Thread blocks of the launch, down · across · split."""
        return self.down * self.across * self.split

    @property
    def executed_flops(self) -> Any:
        """Operations on whole tiles of C [FLOP], 2·(down·bm)·(across·bn)·k."""
        (bm, bn), k = self.tile, self.problem.k
        return 2 * (self.down * bm) * (self.across * bn) * k

    @property
    def useful(self) -> Any:
        """The share of the executed operations that C needs, 0 to 1."""
        return self.problem.flops / self.executed_flops

    @property
    def last_row(self) -> Any:
        """The share of the last row of tiles that lies in C, 0 to 1."""
        return _last(self.problem.m, self.tile[0]) / self.tile[0]

    @property
    def last_column(self) -> Any:
        """The share of the last column of tiles that lies in C, 0 to 1."""
        return _last(self.problem.n, self.tile[1]) / self.tile[1]

    @property
    def wave(self) -> int:
        """Tiles that the device computes at once, SMs · per_sm."""
        return self.device.sms * self.per_sm

    @property
    def waves(self) -> Any:
        """Waves of the launch, the last one included: ⌈tiles / wave⌉."""
        return waves(self.device, self.tiles, self.per_sm)

    @property
    def tail(self) -> Any:
        """Tiles of the last wave, 1 to `wave`."""
        return _last(self.tiles, self.wave)

    @property
    def tail_use(self) -> Any:
        """The share of the device that works in the last wave, 0 to 1."""
        return self.tail / self.wave

    @property
    def wave_use(self) -> Any:
        """The share of the device that works on average if every wave takes as long, 0 to 1."""
        return self.tiles / (self.waves * self.wave)

    @property
    def use(self) -> Any:
        """The most of the peak that both effects leave, useful · wave_use, 0 to 1."""
        return self.useful * self.wave_use


def quantization(
    problem: Product, device: Device, tile: Tile, per_sm: int | None = None, split: int = 1
) -> Quantization:
    """The tiles and waves of `problem` on `device`; `per_sm` as `tiles_per_sm` says where None.

    Raises TypeError or ValueError for sizes that are not positive whole numbers, and ValueError for
    a tile whose sums an SM cannot hold.

    >>> from gemmlab.device import device
    >>> from gemmlab.problem import Gemm
    >>> q = quantization(Gemm(2304, 1544, 4096, dtype="float16"), device("a100_80gb"), (256, 128))
    >>> q.tiles, q.waves, q.tail, round(q.tail_use, 4)
    (117, 2, 9, 0.0833)
    """
    tile = tuple(whole_number(name, size) for name, size in zip(("bm", "bn"), tile, strict=True))
    split = whole_number("split", split)
    if per_sm is None:
        per_sm = tiles_per_sm(device, tile, problem.accumulate)
    return Quantization(problem, device, tile, whole_number("per_sm", per_sm), split)


def tiles_per_sm(device: Device, tile: Tile, accumulate: str = "float32") -> int:
    """Tiles whose sums fit into the registers of an SM, with some left for operands and addresses.

    `sums_fit`, and no more than the blocks that an SM holds: an upper bound, which shared memory
    and a kernel's other registers may lower (`gemmlab.model.occupancy`).
    Raises ValueError where there is no room for one.

    >>> from gemmlab.device import device
    >>> [tiles_per_sm(device("a100_80gb"), tile) for tile in ((256, 128), (128, 128), (64, 64))]
    [1, 3, 15]
    """
    fit = sums_fit(device, tile, accumulate)
    if not fit:
        raise ValueError(
            f"a tile of {tile[0]}×{tile[1]} sums in {accumulate} is too large: it leaves none of "
            f"the {device.registers_per_sm} registers of an SM of {device.title}"
        )
    return min(fit, device.blocks_per_sm)


def sums_fit(device: Device, tile: Tile, accumulate: str = "float32") -> int:
    """Tiles whose sums leave at least one register of an SM, (registers − 1) // (bm·bn·s/4)."""
    sums = tile[0] * tile[1] * number_format(accumulate, "accumulate").bytes
    return 4 * (device.registers_per_sm - 1) // sums


def _last(count: Any, whole: int) -> Any:
    """Count what is in the last of the groups of `whole` that make up `count`, 1 to `whole`."""
    return (count - 1) % whole + 1

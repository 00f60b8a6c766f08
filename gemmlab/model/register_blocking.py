"""The roofline of shared memory: one warp's product out of fragments, and what it must load.

A warp multiplies fragments of (m, n, k): A (m×k), B (k×n) and the sums (m×n). Shared memory bounds
its speed by the bytes that pass for each operation, registers bound the size of the fragments.
Making a fragment in registers, by a rule or from another fragment, saves the bytes.
Source: H. Ootomo, R. Yokota, "Reducing shared memory footprint to leverage high throughput on
Tensor Cores and its flexible API extension library", HPC Asia 2023, sections 3 and 4.4.
"""

from collections.abc import Collection
from dataclasses import dataclass

from gemmlab import Device
from gemmlab.arguments import whole_number
from gemmlab.formats import number_format
from gemmlab.tiling import WARP

REGISTER = 4  # bytes
MATRICES = "ABCD"


@dataclass(frozen=True)
class WarpProduct:
    """A warp computes one product D = AB + C.

    flops : 2mnk [FLOP]; shared_bytes : that pass through shared memory [B]
    registers : of each lane, for all fragments; dtype : of what Tensor Cores multiply
    products : of Tensor Cores that make up this one
    """

    flops: int
    shared_bytes: int
    registers: float
    dtype: str
    products: int = 1

    @property
    def intensity(self) -> float:
        """Operations for each byte of shared memory [FLOP/B]; infinite where none passes."""
        return self.flops / self.shared_bytes if self.shared_bytes else float("inf")

    def peak(self, device: Device) -> float:
        """Return the speed that the Tensor Cores allow [FLOP/s], their peak / products."""
        return device.peak_of(self.dtype) / self.products

    def bound(self, device: Device) -> float:
        """Return the roofline of shared memory [FLOP/s], min(peak, intensity × bandwidth)."""
        return min(self.peak(device), self.intensity * device.shared_bandwidth)

    def share_of_registers(self, device: Device) -> float:
        """Registers for fragments, of those that a thread may have; beyond 1 they spill."""
        return self.registers / device.registers_per_thread

    def spills(self, device: Device) -> bool:
        """Say whether the fragments alone are too many for a thread's registers."""
        return self.registers > device.registers_per_thread


def warp_product(
    m: int,
    n: int,
    k: int,
    dtype: str = "float16",
    accumulate: str = "float32",
    through: Collection[str] = MATRICES,
    copies: int = 1,
) -> WarpProduct:
    """D = AB + C with the matrices in `through` loaded from or stored to shared memory.

    through : letters of "ABCD"; without "A", say, A is made in registers
    copies : of each element of A and B in registers: 2 where `wmma` keeps them twice (Volta)

    For (n, n, n) in float16, n²/16 registers, and n/6 FLOP/B, or n/5 where A or B is made in
    registers.
    Raises TypeError or ValueError for sizes that are not positive whole numbers, formats that are
    not known, and other letters.

    >>> w = warp_product(64, 64, 64)
    >>> w.registers, round(w.intensity, 2), warp_product(64, 64, 64, through="BCD").intensity
    (256.0, 10.67, 12.8)
    """
    m, n, k = (whole_number(x, size) for x, size in zip("mnk", (m, n, k), strict=True))
    if not set(through) <= set(MATRICES):
        raise ValueError(f"through={through!r} has other letters than those of {MATRICES!r}")
    s, wide = number_format(dtype).bytes, number_format(accumulate, "accumulate").bytes
    sizes = {"A": s * m * k, "B": s * k * n, "C": wide * m * n, "D": wide * m * n}
    held = copies * (sizes["A"] + sizes["B"]) + sizes["C"]
    return WarpProduct(
        2 * m * n * k, sum(sizes[x] for x in set(through)), held / REGISTER / WARP, dtype
    )


def split_in_registers(m: int, n: int, k: int, dtype: str = "float16") -> WarpProduct:
    """A float32 product by three of `dtype` (TCEC): operands are loaded once, split in registers.

    Shared memory passes 4 B for each element of A and B. Registers hold high and low parts of both,
    the sum, and that of the corrections; the sums stay there over all k.

    >>> from gemmlab.device import device
    >>> round(split_in_registers(32, 32, 32).bound(device("a100_40gb")) / 1e12, 1)
    104.0
    """
    return _corrected(m, n, k, dtype, passes=number_format("float32").bytes)


def split_in_memory(m: int, n: int, k: int, dtype: str = "float16") -> WarpProduct:
    """Count the same where fragments come from memory alone, as the WMMA API has it.

    Each element of A and B is loaded as float32, and its two parts are stored and loaded again:
    4 + 2·2·s bytes.

    >>> from gemmlab.device import device
    >>> round(split_in_memory(32, 32, 32).bound(device("a100_40gb")) / 1e12, 1)
    52.0
    """
    parts = 2 * number_format(dtype).bytes
    return _corrected(m, n, k, dtype, passes=number_format("float32").bytes + 2 * parts)


def _corrected(m: int, n: int, k: int, dtype: str, passes: int) -> WarpProduct:
    """Three products for one; `passes` is the bytes for each element of A and B."""
    one = warp_product(m, n, k, dtype, through="")
    held = 2 * one.registers  # high and low parts, and two sums
    return WarpProduct(one.flops, passes * (m * k + k * n), held, dtype, products=3)

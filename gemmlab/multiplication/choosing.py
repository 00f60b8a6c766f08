"""Which kernel multiplies: by the GPU that there is, and the sizes of the product."""

from __future__ import annotations

from dataclasses import dataclass

from gemmlab.tiling import Tiling

WGMMA = (9, 0)  # the one compute capability that has `wgmma`
MMA = (8, 0)  # from which on `mma.sync` multiplies m16n8k16 and `cp.async` copies
# So many operations take the FP32 units of an H200 0.15 ms. Python needs about as long for all the
# launches by Tensor Cores, at a hundredth of a millisecond and more each.
FEW = 2 * 1536**3


@dataclass(frozen=True)
class Choice:
    """What `matmul` does for two operands.

    kernel : "tcec_batched", "tcec_registers" or "pipelined", of `gemmlab.kernels`, or "numpy"
    why : in one line
    tiling : of the kernel; None for NumPy
    batch, m, n, k : of the product; layout : how operands are stored, see `Gemm.layout`
    panels : products, rows and columns of C that are computed at a time
    workspace_bytes : memory beside A, B and C [B]
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


def kernel_for(capability: tuple[int, int] | None, flops: int) -> tuple[str, str]:
    """The name of a kernel, and why; capability None where there is no GPU."""
    if capability is None:
        return "numpy", "no GPU is used: NumPy multiplies in FP32, on the processor"
    told = "compute capability {}.{}".format(*capability)
    if capability < MMA:
        return "pipelined", f"{told} has no mma.sync of 16×8×16: FP32 units multiply"
    if flops < FEW:
        return "pipelined", f"{flops:.2g} FLOP are few: one launch on FP32 units takes less time"
    if capability == WGMMA:
        return "tcec_batched", f"{told} has wgmma: operands are split beforehand"
    return "tcec_registers", f"{told} has mma.sync: operands are split in registers"

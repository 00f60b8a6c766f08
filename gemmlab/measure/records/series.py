"""Measurements along one size of a product: a sawtooth over n, an alignment over k.

They come from the counterparts of the guide's figures, which `gemmlab record --figures` measures,
in ``gemmlab/recorded/<device>/figures/<kernel>.jsonl``, and from the records of the ladder.
"""

from __future__ import annotations

from pathlib import Path

from gemmlab.device import RECORDED
from gemmlab.kernels.kernel import Kernel
from gemmlab.measure.measurement import Measurement
from gemmlab.measure.records import ROOT, load, read
from gemmlab.problem import Gemm
from gemmlab.tiling import Tiling

FIGURES = "figures"  # the folder, below that of a device
ALIGNMENTS = [(4096, 4096, k) for k in range(1024, 1024 + 65)]  # figure 2: each k modulo 64


def series(
    kernel: Kernel,
    along: str,
    device: str = RECORDED,
    tiling: Tiling | None = None,
    dtype: str = "float32",
    root: str | Path = ROOT,
    **sizes: int,
) -> list[Measurement]:
    """What is recorded of `kernel` where only the size `along` changes, from small to large.

    along : "m", "n" or "k"; sizes : the two others, m=4096
    tiling : of the kernel; its own where None
    Problems are plain: C ← AB, row by row. Raises TypeError unless `along` and `sizes` are m, n and
    k, and ValueError for a tiling that the kernel cannot use.

    >>> from gemmlab import kernels
    >>> [m.problem.k for m in series(kernels.cublas, "k", m=4096, n=4096) if m.problem.k >= 4096]
    [4096, 4097, 4098, 4100, 4104]
    """
    if sorted((along, *sizes)) != ["k", "m", "n"]:
        given = ", ".join((along, *sizes))
        raise TypeError(f"the sizes are {given}; use one of m, n, k as `along`, and set the others")
    wanted, found = kernel.choose(tiling), {}
    for m in (*load(device, root=root), *figures(device, root)):
        size = getattr(m.problem, along)
        plain = Gemm(**{along: size, **sizes}, dtype=dtype)
        if (m.kernel, m.tiling, m.problem) == (kernel.name, wanted, plain):
            found[size] = m
    return [found[size] for size in sorted(found)]


def figures(device: str = RECORDED, root: str | Path = ROOT) -> list[Measurement]:
    """Every measurement of a device's figures, file by file; none where it has none.

    Raises RecordError for files that were truncated or edited.
    """
    files = sorted((Path(root) / device / FIGURES).glob("*.jsonl"))
    return [measurement for path in files for measurement in read(path)]

"""Matrix instructions on whole tiles: D = A·B + C as one instruction returns it.

A GPU whose Tensor Cores have lost an instruction still runs it, on its CUDA cores: m8n8k4 is
compiled to HMMA.884 for sm_75, but for sm_80 and sm_90 to FFMA and FADD (read in what ptxas 13.0
makes of it, and in an H200's results).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gemmlab.device import architecture
from gemmlab.formats import FORMATS, number_format
from gemmlab.formats.values import exact
from gemmlab.numerics.dot import fused_dot_add, nan_word, tensor_core
from gemmlab.numerics.fma import fma_chain

__all__ = ["MMAS", "Mma", "mma", "mma_named"]


@dataclass(frozen=True)
class Mma:
    """A matrix instruction: D (m×n) = A (m×k) · B (k×n) + C (m×n).

    dtype : format of A and B; out_dtype : format of C and D
    requires : the oldest architecture that has it
    family : "mma", or "wmma" whose fragments are loaded by instructions of its own
    last : the newest architecture that has it in its Tensor Cores, "" where there is no end
    """

    m: int
    n: int
    k: int
    dtype: str
    out_dtype: str
    requires: str
    family: str = "mma"
    last: str = ""

    @property
    def shape(self) -> str:
        """As PTX writes it, after the family where that is not mma.

        >>> MMAS["wmma.m16n16k8.f32.tf32"].shape
        'wmma.m16n16k8'
        """
        shape = f"m{self.m}n{self.n}k{self.k}"
        return shape if self.family == "mma" else f"{self.family}.{shape}"

    @property
    def name(self) -> str:
        """As in PTX, without what never varies: shape, format of C and D, format of A and B.

        >>> MMAS["m16n8k8.f32.tf32"].name
        'm16n8k8.f32.tf32'
        """
        return f"{self.shape}.{FORMATS[self.out_dtype].ptx}.{FORMATS[self.dtype].ptx}"


# The only list of matrix instructions: `gemmlab.instructions` makes of each what kernels call.
# Shapes, formats and least architectures: PTX ISA 9.0, sections "Matrix multiply-accumulate
# instructions: mma" and "wmma.mma".
MMAS = {
    i.name: i
    for i in (
        Mma(8, 8, 4, "float16", "float32", "sm_70", last="sm_75"),
        Mma(8, 8, 4, "float16", "float16", "sm_70", last="sm_75"),
        Mma(16, 16, 16, "float16", "float32", "sm_70", "wmma"),
        Mma(16, 16, 16, "float16", "float16", "sm_70", "wmma"),
        Mma(16, 8, 8, "float16", "float32", "sm_75"),
        Mma(16, 8, 8, "float16", "float16", "sm_75"),
        Mma(16, 8, 8, "bfloat16", "float32", "sm_80"),
        Mma(16, 8, 16, "float16", "float32", "sm_80"),
        Mma(16, 8, 16, "float16", "float16", "sm_80"),
        Mma(16, 8, 16, "bfloat16", "float32", "sm_80"),
        Mma(16, 8, 4, "tf32", "float32", "sm_80"),
        Mma(16, 8, 8, "tf32", "float32", "sm_80"),
        Mma(16, 16, 8, "tf32", "float32", "sm_80", "wmma"),
    )
}


def mma_named(name: str) -> Mma:
    """The instruction called `name`; ValueError, listing what is known, for another.

    >>> mma_named("m16n8k16.f32.f16").requires
    'sm_80'
    """
    if not isinstance(name, str) or name not in MMAS:
        raise ValueError(f"instruction={name!r} is not known; use one of {', '.join(MMAS)}")
    return MMAS[name]


def mma(
    a: object, b: object, c: object, instruction: str = "m16n8k16.f32.f16", arch: str = "sm_90"
) -> np.ndarray:
    """What `instruction` returns on `arch` for A·B + C, to the bit.

    a : (…, m, k), b : (…, k, n), c : (…, m, n); leading axes broadcast
    instruction : a name in `MMAS`

    Returns D (…, m, n) in the instruction's output format. Raises ValueError for tiles of another
    shape or of values that the formats do not have, and where the instruction needs a newer
    architecture than `arch`.

    >>> d = mma(np.eye(16, dtype=np.float16), np.ones((16, 8), np.float16), np.zeros((16, 8)))
    >>> d.shape, float(d.sum())
    ((16, 8), 128.0)
    """
    i = mma_named(instruction)
    a, b, c = (np.asarray(x) for x in (a, b, c))
    wanted = {"A": (i.m, i.k), "B": (i.k, i.n), "C": (i.m, i.n)}
    for (name, shape), x in zip(wanted.items(), (a, b, c), strict=True):
        if x.shape[-2:] != shape:
            raise ValueError(
                f"{name} has shape {x.shape}; {i.name} needs (…, {shape[0]}, {shape[1]})"
            )
    leading = [x.shape[:-2] for x in (a, b, c)]
    try:
        np.broadcast_shapes(*leading)
    except ValueError:
        raise ValueError(f"the leading axes of A, B and C, {leading}, do not broadcast") from None
    return products(a[..., :, None, :], np.swapaxes(b, -1, -2)[..., None, :, :], c, i, arch)


def products(rows: np.ndarray, columns: np.ndarray, c: np.ndarray, i: Mma, arch: str) -> np.ndarray:
    """The dot products of instruction `i` on `arch`: rows and columns (…, k), c (…).

    ValueError where the instruction needs a newer architecture.
    """
    own = architecture(tensor_core(arch).arch)
    if own < architecture(i.requires):
        raise ValueError(f"{i.name} needs {i.requires} or newer, not arch={arch!r}")
    if i.last and own > architecture(i.last):
        return _on_cuda_cores(rows, columns, c, i)
    return fused_dot_add(rows, columns, c, dtype=i.dtype, arch=arch, out_dtype=i.out_dtype)


def _on_cuda_cores(rows: np.ndarray, columns: np.ndarray, c: np.ndarray, i: Mma) -> np.ndarray:
    """Four products in float32, rounded to nearest: with c in float32 a chain of FMAs from +0, and
    then c; with c in float16 c + (a_0 b_0 + a_1 b_1), then + (a_2 b_2 + a_3 b_3).
    """
    source, target = number_format(i.dtype), number_format(i.out_dtype)
    with np.errstate(invalid="ignore", over="ignore"):  # ∞ − ∞, and beyond the largest number
        x, y = (exact(v, source).astype(np.float32) for v in (rows, columns))
        start = exact(c, target).astype(np.float32)
        if target.name == "float32":
            total = fma_chain(x, y) + start
        else:
            p = x * y  # exact
            total = (start + (p[..., 0] + p[..., 1])) + (p[..., 2] + p[..., 3])
        words = total.astype(target.carrier).view(target.words)
    return (
        np.where(np.isnan(total), nan_word(target), words).astype(target.words).view(target.carrier)
    )

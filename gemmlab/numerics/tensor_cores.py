"""The Tensor Core to the bit: a fused dot product with addition, and matrix instructions of them.

A block d = c + Σ a_i·b_i of K products is computed as follows.

1. Each operand is s·2^e with e = max(⌊log2 |x|⌋, emin of its format); subnormals are kept.
2. A product is s_a·s_b, exactly, with exponent e_a + e_b; it is not normalised, so |s_a·s_b| < 4.
3. E is the largest exponent of the nonzero products and of c, and at least the floor below.
4. Each term, c included, is truncated toward zero to a multiple of 2^(E − F).
5. The multiples are summed exactly: their order does not matter.
6. The sum is rounded: to float32 toward zero, to float16 to nearest with ties to even. Of operands
   in FP8, whose F is 13, float32 results have 13 fraction bits, too. Beyond the largest number the
   result is an infinity; a zero is +0; NaN is 0x7FFFFFFF or 0x7FFF.

A longer dot product is a chain of blocks: the result of one is the c of the next. A matrix
instruction, D = A·B + C, is a dot product for each element of D.

A GPU whose Tensor Cores have lost an instruction still runs it, on its CUDA cores: m8n8k4 is
compiled to HMMA.884 for sm_75, but for sm_80 and sm_90 to FFMA and FADD (read in what ptxas 13.0
makes of it, and in an H200's results).

Sources: F. A. Khattak, M. Mikaitis, "Accurate models of NVIDIA Tensor Cores", arXiv:2512.07004;
P. Xie et al., "MMA-Sim", arXiv:2511.10909; M. Fasi, N. J. Higham, M. Mikaitis, S. Pranesh,
"Numerical behavior of NVIDIA Tensor Cores", PeerJ Computer Science 7:e330 (2021).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gemmlab.device import Capability, architecture
from gemmlab.formats import (
    EIGHT_BITS,
    FORMATS,
    Format,
    decode,
    encode,
    exact,
    number_format,
)
from gemmlab.numerics.fma import fma_chain, leading_shape

__all__ = [
    "MMAS", "TENSOR_CORES", "Mma", "TensorCore", "fused_dot_add", "mma", "mma_named", "tensor_core",
    "tensor_core_of",
]  # fmt: skip

OUTPUTS = ("float32", "float16")
_NOTHING = -1000  # the exponent of a zero: below every other, so that a zero sets no E
_CHUNK = 1 << 12  # dot products at a time: the terms of as many stay in cache


@dataclass(frozen=True)
class TensorCore:
    """The way in which the Tensor Cores of one architecture add.

    arch : its name in `ARCHITECTURES`
    fraction_bits : F, bits kept below the largest exponent when terms are aligned
    eight_bits : F where operands are in FP8, and fraction bits of their sums; 0 where there is none
    block : products that are summed in one step, by operand format
    floor : the least E, by output format; an architecture without one has no entry
    """

    arch: str
    fraction_bits: int
    block: Mapping[str, int]
    floor: Mapping[str, int]
    eight_bits: int = 0

    def kept(self, dtype: str) -> int:
        """Return F for operands of a format.

        >>> tensor_core("sm_90").kept("float16"), tensor_core("sm_90").kept("float8_e4m3fn")
        (25, 13)
        """
        return self.eight_bits if dtype in EIGHT_BITS else self.fraction_bits

    def result_bits(self, dtype: str, out_dtype: str) -> int:
        """Return the fraction bits that a sum of products keeps."""
        most = FORMATS[out_dtype].fraction_bits
        return min(most, self.eight_bits) if dtype in EIGHT_BITS else most

    def formats(self, dtype: str, out_dtype: str) -> tuple[Format, Format]:
        """The formats of operands and of results; ValueError for two that do not go together."""
        if not isinstance(dtype, str) or dtype not in self.block:
            known = ", ".join(self.block)
            raise ValueError(f"dtype={dtype!r} is no operand format of {self.arch}; use {known}")
        allowed = OUTPUTS if dtype == "float16" else OUTPUTS[:1]
        if out_dtype not in allowed:
            raise ValueError(
                f"out_dtype={out_dtype!r} does not go with dtype={dtype!r}; use "
                f"{' or '.join(allowed)}"
            )
        return number_format(dtype), number_format(out_dtype)


# F, blocks and floors: arXiv:2512.07004 and its models (V100, A100, H100); Turing's F and block:
# arXiv:2511.10909, its floors taken from Ampere's, which has the same F.
TENSOR_CORES = {
    core.arch: core
    for core in (
        TensorCore("sm_70", 23, {"float16": 4}, {"float16": -19}),
        TensorCore("sm_75", 24, {"float16": 8}, {"float32": -132, "float16": -20}),
        TensorCore(
            "sm_80",
            24,
            {"float16": 8, "bfloat16": 8, "tf32": 4},
            {"float32": -132, "float16": -20},
        ),
        TensorCore(
            "sm_90",
            25,
            {"float16": 16, "bfloat16": 16, "tf32": 8} | dict.fromkeys(EIGHT_BITS, 32),
            {"float32": -133, "float16": -21},
            eight_bits=13,
        ),
    )
}


class _Terms(NamedTuple):
    """Numbers as integers: significand (signed), exponent, and which are infinite or NaN."""

    significand: np.ndarray
    exponent: np.ndarray
    special: np.ndarray


def tensor_core(arch: str) -> TensorCore:
    """The Tensor Cores of `arch`; ValueError, listing what is known, for another.

    >>> tensor_core("sm_90").block["float16"]
    16
    """
    if not isinstance(arch, str) or arch not in TENSOR_CORES:
        raise ValueError(f"arch={arch!r} is not known; use one of {', '.join(TENSOR_CORES)}")
    return TENSOR_CORES[arch]


def tensor_core_of(capability: Capability) -> TensorCore:
    """The Tensor Cores by which a GPU is emulated: the newest in `TENSOR_CORES` that its compute
    capability is not below; for a GPU older than all of them, the oldest.

    >>> tensor_core_of((8, 9)).arch
    'sm_80'
    """
    known = sorted(architecture(name) for name in TENSOR_CORES)
    able = [a for a in known if a.capability <= capability] or known[:1]
    return TENSOR_CORES[able[-1].name]


def nan_word(form: Format) -> int:
    """The NaN that Tensor Cores and conversions to `form` return: all ones but sign and padding."""
    return (2 ** (8 * form.bytes - 1) - 1) >> form.padding << form.padding


def fused_dot_add(
    a: object,
    b: object,
    c: object,
    *,
    dtype: str = "float16",
    arch: str = "sm_90",
    out_dtype: str = "float32",
) -> np.ndarray:
    """Return the result of a Tensor Core for c + Σ a_i·b_i, to the bit.

    a, b : (…, K), numbers of format `dtype`; of a TF32 operand the low 13 bits are not read
    c : (…), numbers of format `out_dtype`; the leading axes of a, b and c broadcast
    dtype : "float16", "bfloat16", "tf32", "float8_e5m2" or "float8_e4m3fn", as `arch` has it
    arch : "sm_70", "sm_75", "sm_80" or "sm_90"
    out_dtype : "float32", or "float16" for float16 operands

    Returns an array (…) of type `out_dtype`. K beyond the architecture's block is a chain of
    blocks, of which the last may be short. Raises ValueError for formats and architectures that do
    not go together, for shapes that do not, for K = 0 and for values that the formats do not have,
    TypeError for what is no real number.

    In float32 each of these products would be rounded off 2048 when it is added:

    >>> a, b = np.float16([1, 1]), np.float16([2**-13, 2**-13])
    >>> [float(fused_dot_add(a, b, 2048.0, arch=arch)) - 2048 for arch in ("sm_70", "sm_90")]
    [0.0, 0.000244140625]
    """
    core = tensor_core(arch)
    source, target = core.formats(dtype, out_dtype)
    a_words, b_words = (_words(x, source) for x in (a, b))
    c_words = _words(c, target)
    shape = leading_shape(a_words, b_words, c_words)
    if a_words.shape[-1] == 0:
        raise ValueError(f"a has shape {a_words.shape} and b {b_words.shape}; use K at least 1")
    flat = shape or (1,)
    a_words, b_words = (_terms_first(w, flat) for w in (a_words, b_words))
    result = np.array(np.broadcast_to(c_words, flat), order="C")
    floor = core.floor.get(out_dtype, _NOTHING)
    for start in range(0, len(a_words), core.block[dtype]):
        block = slice(start, start + core.block[dtype])
        for piece in _pieces(flat):
            x, y = (_part(w[block], piece) for w in (a_words, b_words))
            z = result[piece]
            terms = _decode(x, source), _decode(y, source), _decode(z, target)
            out = _block(*terms, source, target, core.kept(dtype), floor)
            out = _cut(out, target, core.result_bits(dtype, out_dtype))
            special = terms[0].special.any(axis=0) | terms[1].special.any(axis=0) | terms[2].special
            if special.any():
                x, y = (np.broadcast_to(w, (len(w), *z.shape))[:, special] for w in (x, y))
                out[special] = _special(x, y, z[special], source, target)
            result[piece] = out
    return result.reshape(shape).view(target.carrier)[()]


def _words(x: object, form: Format) -> np.ndarray:
    """Return the bits of numbers; of TF32 whatever a float32 has is taken."""
    if form.name in EIGHT_BITS:
        return np.asarray(encode(x, form.name))
    held = exact(x, number_format("float32") if form.name == "tf32" else form)
    return held.view(f"u{form.carrier.itemsize}")


def _terms_first(words: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """(…, K) as (K, …) with an axis for each of `shape`: a step over K is one over whole arrays."""
    lead = (1,) * (len(shape) + 1 - words.ndim)
    return np.ascontiguousarray(np.moveaxis(words.reshape(lead + words.shape), -1, 0))


def _part(words: np.ndarray, piece: tuple) -> np.ndarray:
    """Return the part of (K, …) that broadcasts to a piece of the result."""
    index = [slice(None)]
    for size, at in zip(words.shape[1:], piece, strict=False):
        whole = slice(None) if isinstance(at, slice) else 0
        index.append(whole if size == 1 else at)
    return words[tuple(index)]


def _pieces(shape: tuple[int, ...]) -> Iterator[tuple]:
    """Indices that cut an array of this shape into parts of about `_CHUNK` elements."""
    rest = int(np.prod(shape[1:], dtype=np.int64))
    if rest > _CHUNK:
        for i in range(shape[0]):
            yield from ((i, *piece) for piece in _pieces(shape[1:]))
        return
    rows = max(1, _CHUNK // max(1, rest))
    for i in range(0, shape[0], rows):
        yield (slice(i, i + rows),)


def _decode(words: np.ndarray, form: Format) -> _Terms:
    """Significands as integers with `fraction_bits` bits below the point, and exponents."""
    drop = _unused(words, form)
    bits = (words >> drop).astype(np.int64 if form.name == "float32" else np.int32)
    top = 1 << form.exponent_bits
    field = (bits >> form.fraction_bits) & (top - 1)
    significand = (bits & ((1 << form.fraction_bits) - 1)) | (
        (field > 0).astype(bits.dtype) << form.fraction_bits
    )
    exponent = np.where(significand == 0, _NOTHING, np.maximum(field, 1) - form.bias)
    negative = (bits >> (form.exponent_bits + form.fraction_bits)) & 1
    significand = (significand ^ -negative) + negative
    special = field == top - 1
    if not form.infinities:
        special &= np.abs(significand) == (2 << form.fraction_bits) - 1
    return _Terms(significand.astype(np.int32), exponent.astype(np.int32), special)


def _unused(words: np.ndarray, form: Format) -> int:
    """Count the low bits of words that are none of the format's."""
    return 8 * words.itemsize - 1 - form.exponent_bits - form.fraction_bits


def _cut(words: np.ndarray, form: Format, kept: int) -> np.ndarray:
    """Truncate words toward zero to so many fraction bits."""
    drop = form.fraction_bits - kept
    return words >> drop << drop if drop else words


def _block(
    a: _Terms, b: _Terms, c: _Terms, source: Format, target: Format, kept: int, floor: int
) -> np.ndarray:
    """Return the words of c + Σ a_i·b_i for one block of finite terms; a, b (K, …), c (…)."""
    # A product has less than 2 + F ≤ 27 bits after its shift, c less than 1 + F ≤ 26: int32 holds
    # each, and int64 the sum of 32 products and c (33 bits).
    product = np.multiply(a.significand, b.significand, order="C")
    exponent = np.add(a.exponent, b.exponent, order="C")
    largest = np.maximum(exponent.max(axis=0), np.maximum(c.exponent, floor))
    terms = _aligned(product, largest - exponent, kept - 2 * source.fraction_bits)
    total = terms.sum(axis=0, dtype=np.int64) + _aligned(
        c.significand, largest - c.exponent, kept - target.fraction_bits
    )
    return _rounded(total, largest - kept, target)


def _aligned(significand: np.ndarray, distance: np.ndarray, up: int) -> np.ndarray:
    """Significand · 2^(up − distance), truncated toward zero."""
    sign = significand >> 31
    magnitude = np.abs(significand) << max(up, 0)
    magnitude = magnitude >> np.minimum(distance + max(-up, 0), 31)
    magnitude ^= sign
    magnitude -= sign
    return magnitude


def _rounded(total: np.ndarray, unit: np.ndarray, target: Format) -> np.ndarray:
    """The words of total · 2^unit in format `target`: float32 toward zero, float16 to nearest."""
    magnitude = np.abs(total)
    # |total| < 2^53, so float64 has it exactly, and its exponent counts the bits.
    length = np.frexp(magnitude.astype(np.float64))[1]
    place = np.maximum(length - target.precision + unit, target.emin - target.fraction_bits)
    place = place.astype(np.int64)
    shift = place - unit
    down, up = np.maximum(shift, 0), np.maximum(-shift, 0)
    kept = magnitude >> down
    if target.name == "float16":
        lost = magnitude - (kept << down)
        half = (np.int64(1) << down) >> 1
        kept += (lost > half) | ((lost == half) & (down > 0) & (kept & 1 == 1))
    kept <<= up
    # The implicit bit of a normal number adds one to the exponent field by itself, and so does a
    # significand that was rounded up to the next power of two.
    words = kept + ((place - (target.emin - target.fraction_bits)) << target.fraction_bits)
    infinity = (2**target.exponent_bits - 1) << target.fraction_bits
    words = np.minimum(words, infinity)
    sign = (total < 0).astype(np.int64) << (target.exponent_bits + target.fraction_bits)
    return np.where(kept == 0, 0, words | sign).astype(target.words)  # a zero is +0


def _special(
    a: np.ndarray, b: np.ndarray, c: np.ndarray, source: Format, target: Format
) -> np.ndarray:
    """The words where an operand is infinite or NaN: IEEE rules; a, b (K, n) and c (n) words."""
    with np.errstate(invalid="ignore"):  # 0 · ∞ and ∞ − ∞ are NaN; finite terms cannot overflow
        x, y = (_value(w, source).astype(np.float64) for w in (a, b))
        total = (x * y).sum(axis=0) + c.view(target.carrier).astype(np.float64)
        infinity = np.copysign(np.inf, total).astype(target.carrier).view(target.words)
    return np.where(np.isnan(total), nan_word(target), infinity).astype(target.words)


def _value(words: np.ndarray, form: Format) -> np.ndarray:
    """Return the numbers of words, as `_words` has them."""
    if form.name in EIGHT_BITS:
        return decode(words, form.name)
    drop = _unused(words, form)
    return (words >> drop << drop).view(form.carrier)


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
        """The shape as PTX writes it, after the family where that is not mma.

        >>> MMAS["wmma.m16n16k8.f32.tf32"].shape
        'wmma.m16n16k8'
        """
        shape = f"m{self.m}n{self.n}k{self.k}"
        return shape if self.family == "mma" else f"{self.family}.{shape}"

    @property
    def name(self) -> str:
        """The name as in PTX, without what never varies: shape, format of C and D, and of A and B.

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
    """Return the instruction called `name`; ValueError, listing what is known, for another.

    >>> mma_named("m16n8k16.f32.f16").requires
    'sm_80'
    """
    if not isinstance(name, str) or name not in MMAS:
        raise ValueError(f"instruction={name!r} is not known; use one of {', '.join(MMAS)}")
    return MMAS[name]


def mma(
    a: object, b: object, c: object, instruction: str = "m16n8k16.f32.f16", arch: str = "sm_90"
) -> np.ndarray:
    """Return the result of `instruction` on `arch` for A·B + C, to the bit.

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
    """Return the dot products of instruction `i` on `arch`: rows and columns (…, k), c (…).

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

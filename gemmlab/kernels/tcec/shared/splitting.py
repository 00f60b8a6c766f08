"""A float32 number as two of FP16: x ≈ high + low / 2^11, as `numerics.split` says.

Two of TF32 have the exponents of float32, and need no factor. What is only rounded has a low part
of zero, for uniform calls.

Source: H. Ootomo, R. Yokota, "Recovering single precision accuracy from Tensor Cores while
surpassing the FP32 theoretical peak performance", IJHPCA 36 (2022).
"""

from numpy import float32, uint32

from gemmlab.instructions import cvt_rn_f16x2_f32, cvt_rna_tf32_f32, unpack_f16x2
from gemmlab.kernels.kernel import on_device

SCALE = float32(2.0**11)  # of low parts: they are as large as high ones, and underflow no sooner
UNSCALE = float32(2.0**-11)


@on_device
def split_two(x, y):
    """High parts of two numbers in one word, and low parts in another; both to nearest."""
    high = cvt_rn_f16x2_f32(x, y)
    a, b = unpack_f16x2(high)
    return high, cvt_rn_f16x2_f32((x - a) * SCALE, (y - b) * SCALE)  # the differences are exact


@on_device
def split_unscaled(x, y):
    """Two parts of two numbers, the low ones not scaled: small ones underflow."""
    high = cvt_rn_f16x2_f32(x, y)
    a, b = unpack_f16x2(high)
    return high, cvt_rn_f16x2_f32(x - a, y - b)


@on_device
def round_two(x, y):
    """The high parts of two numbers in one word, and no low ones."""
    return cvt_rn_f16x2_f32(x, y), uint32(0)


@on_device
def split_one(x):
    """High and low part of a number in TF32, to nearest, ties away from zero."""
    high = cvt_rna_tf32_f32(x)
    return high, cvt_rna_tf32_f32(x - high)


@on_device
def round_one(x):
    """The high part of a number in TF32, and no low one."""
    return cvt_rna_tf32_f32(x), float32(0)

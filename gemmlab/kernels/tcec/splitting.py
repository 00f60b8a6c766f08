"""A float32 number as two of FP16: x ≈ high + low / 2^11, as `numerics.split` says.

Source: H. Ootomo, R. Yokota, "Recovering single precision accuracy from Tensor Cores while
surpassing the FP32 theoretical peak performance", IJHPCA 36 (2022).
"""

from __future__ import annotations

from numpy import float32

from gemmlab.instructions import cvt_rn_f16x2_f32, unpack_f16x2
from gemmlab.kernels.kernel import on_device

SCALE = float32(2.0**11)  # of low parts: they are as large as high ones, and underflow no sooner
UNSCALE = float32(2.0**-11)


@on_device
def split_two(x, y):
    """High parts of two numbers in one word, and low parts in another; both to nearest."""
    high = cvt_rn_f16x2_f32(x, y)
    a, b = unpack_f16x2(high)
    return high, cvt_rn_f16x2_f32((x - a) * SCALE, (y - b) * SCALE)  # the differences are exact

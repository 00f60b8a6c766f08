"""Products of FP8 by `wgmma`, from tiles that ordinary stores have filled."""

import numpy as np
import pytest

from gemmlab import simulate
from gemmlab.formats import EIGHT_BITS, FORMATS, from_memory, round_to, to_memory
from gemmlab.numerics import fused_dot_add
from tests.support.asynchronous import STORED, N, made

ROWS = 64


def of_bytes(form):
    """STORED for a format of 8 bits: a row has 128 along k, of which each product takes 32."""
    source = STORED.replace("float16", "uint8").replace("64 * 64", "64 * 128")
    source = source.replace("N * 64", "N * 128").replace("(64, 64)", "(64, 128)")
    source = source.replace("(N, 64)", "(N, 128)").replace("i // 64", "i // 128")
    source = source.replace("i % 64", "i % 128").replace("% 8 * 8]", "% 8 * 16]")
    for first, instead in ((48, 96), (32, 64), (16, 32)):
        source = source.replace(f"0, {first}", f"0, {instead}")
    return source.replace("wgmma(", f"wgmma_m64n{N}k32_f32_{FORMATS[form].ptx}(")


@pytest.mark.parametrize("form", EIGHT_BITS)
def test_a_product_of_bytes_has_the_emulators_bits(form):
    rng = np.random.default_rng(5)
    a, b = (to_memory(round_to(rng.standard_normal((rows, 128)), form), form) for rows in (ROWS, N))
    c = np.full((ROWS, N), np.nan, np.float32)
    simulate(made(of_bytes(form), form), 1, 128, a, b, 128, c, shared_bytes=1 << 14)
    x, y = (from_memory(words, form) for words in (a, b))
    assert np.array_equal(c, fused_dot_add(x[:, None], y[None], np.zeros_like(c), dtype=form))
    halves = made(STORED.replace("wgmma(", f"wgmma_m64n{N}k32_f32_{FORMATS[form].ptx}("), "halves")
    given = (np.zeros((rows, 64), np.float16) for rows in (ROWS, N))
    with pytest.raises(TypeError, match="multiplies uint8, not float16"):
        simulate(halves, 1, 128, *given, 64, c, shared_bytes=1 << 14)

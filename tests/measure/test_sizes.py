"""Problems from a command line: sizes, layouts, formats, and what is none."""

import pytest

from gemmlab.measure.recording import SIZES, parse_sizes
from gemmlab.problem import Gemm


def test_sizes():
    assert parse_sizes("256, 8192x128x64") == [Gemm(256, 256, 256), Gemm(8192, 128, 64)]
    assert parse_sizes("8:tn") == [Gemm(8, 8, 8, layout="tn")]
    for text in ("", "0", "-1", "1.5", "8x8", "8x8x8x8", "16,,16", "x"):
        with pytest.raises(ValueError, match="is not known; use n or mxnxk"):
            parse_sizes(text)


def test_layout_and_format_in_any_order():
    half = Gemm(8, 8, 8, dtype="float16", layout="nt")
    assert parse_sizes("8:nt:float16, 8:FLOAT16:nt") == [half, half]
    assert parse_sizes("8x4x2:bfloat16") == [Gemm(8, 4, 2, dtype="bfloat16")]
    wide = Gemm(8, 8, 8, dtype="float16", out_dtype="float32")
    assert parse_sizes("8:to-float32:float16") == [wide]
    with pytest.raises(ValueError, match="'' of '8:' is no layout and no format; use one of nn"):
        parse_sizes("8:")
    with pytest.raises(ValueError, match="'fp16' .* tt, float64, float32, tf32, bfloat16, float16"):
        parse_sizes("8:nt:fp16")
    with pytest.raises(ValueError, match="two of 'nt' and 'nn'; use one"):
        parse_sizes("8:nt:nn")
    with pytest.raises(ValueError, match="two of 'float32' and 'to-float16'; use one"):
        parse_sizes("8:to-float32:to-float16")
    with pytest.raises(ValueError, match="out_dtype='tf32' is a format of operands"):
        parse_sizes("8:to-tf32")


def test_the_default_campaign_has_square_ragged_and_skinny_problems():
    problems = parse_sizes(SIZES)
    squares = {p.n for p in problems if p.m == p.n == p.k}
    assert {256, 512, 1024, 2048, 4096, 8192} < squares
    assert any(n % 8 for n in squares)
    assert Gemm(4096, 1, 4096) in problems
    assert {p.k % 16 for p in problems if p.m == p.n == 4096} >= {0, 1, 2, 3, 4, 8}
    assert {p.layout for p in problems} == {"nn", "nt", "tn", "tt"}
    assert len(problems) == len(set(problems))
    assert {str(p.arithmetic) for p in problems} == {
        "float32", "float16 to float32", "float16", "bfloat16 to float32"
    }  # fmt: skip

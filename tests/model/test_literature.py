"""Published values: each with its source, and no faster than what no implementation can beat."""

import pytest

from gemmlab.device import device
from gemmlab.model import predict
from gemmlab.model.in_tiles import choose
from gemmlab.model.literature import FILE, parse, published

CUBLAS = [v for v in published().values() if v.problem]
TEXT = FILE.read_text("utf-8")


@pytest.mark.parametrize("value", CUBLAS, ids=lambda v: v.name)
def test_what_was_published_lies_below_the_bounds(value):
    gpu = device(value.device)
    assert value.value < choose(value.problem, gpu).flops_per_second
    assert value.value < predict(value.problem, gpu).flops_per_second


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('device = "v100"', 'device = "v101"', "'v101' is none of a100_40gb"),
        ('unit = "1"', 'unit = "TFLOP/s"', "'TFLOP/s' is none of FLOP/s"),
        ('"cublas_float16_8192"', '"cublas_float16_4096"', "cublas_float16_4096 is there twice"),
        ('what = "cuBLAS, FP16"', 'what = ""', "says not what was measured"),
    ],
)
def test_entries_that_lack_something_are_refused(old, new, words):
    assert old in TEXT
    with pytest.raises(ValueError, match=words):
        parse(TEXT.replace(old, new))
    with pytest.raises(TypeError, match="source"):
        parse(TEXT.replace("source =", "# "))

"""Alignment: multiples that Tensor Cores want, and how wide rows can be loaded."""

import numpy as np
import pytest

from gemmlab.device import device, names
from gemmlab.formats import FORMATS
from gemmlab.model.alignment import (
    TABLE,
    alignment,
    copies_asynchronously,
    loads_per_16_bytes,
    multiples,
    recommended_bytes,
    row_alignment,
    vector_bytes,
)
from gemmlab.problem import Gemm, Gemms


@pytest.mark.parametrize("dtype", FORMATS)
def test_alignment_is_that_of_every_row(dtype):
    """The largest power of two that divides the address of each of many rows."""
    s = FORMATS[dtype].bytes
    for elements in range(1, 300):
        addresses = elements * s * np.arange(64)
        divides = [b for b in (1, 2, 4, 8, 16, 32, 64, 128) if not np.any(addresses % b)]
        assert alignment(elements, dtype) == max(divides)
        assert vector_bytes(elements, dtype) == max(b for b in divides if b <= 16)
    many = np.arange(1, 300)
    assert alignment(many, dtype).tolist() == [alignment(int(k), dtype) for k in many]


def test_rows_are_those_of_the_stored_arrays():
    p = Gemm(40, 12, 6, dtype="float16", out_dtype="float32")
    assert row_alignment(p) == (4, 8, 16)
    assert row_alignment(Gemm(40, 12, 6, dtype="float16", layout="tt")) == (16, 4, 8)
    k = np.arange(4096, 4105)
    a, b, c = row_alignment(Gemms(4096, 4096, k, dtype="float16"))
    assert a.tolist() == [128, 2, 4, 2, 8, 2, 4, 2, 16]
    assert set(b) == set(c) == {128}


def test_what_k_mod_8_does():
    """Of 16 residues the even ones load wider than the odd ones; multiples of 8 in one go."""
    for k in range(4096, 4112):
        loads = loads_per_16_bytes(k, "float16")
        assert loads == {0: 1, 4: 2, 2: 4, 6: 4}.get(k % 8, 8)
        assert copies_asynchronously(k, "float16") == (k % 2 == 0)
        assert copies_asynchronously(k, "float32")
        assert loads_per_16_bytes(k, "float32") == {0: 1, 2: 2}.get(k % 4, 4)


def test_multiples_are_whole_pieces_of_16_bytes():
    for name, size in TABLE.items():
        found = multiples(name)
        assert found.efficient * size == 16
        assert found.on_a100 * size == 128
        assert found.required in (None, found.efficient)
        if name in FORMATS:
            assert size == FORMATS[name].bytes
            assert alignment(found.efficient, name) == 16
            assert alignment(found.on_a100, name) == 128
    with pytest.raises(ValueError, match="'float32' is not in the table; use one of int8, float16"):
        multiples("float32")


def test_the_a100_alone_is_recommended_more():
    assert {n: recommended_bytes(device(n)) for n in names() if recommended_bytes(device(n)) > 16} \
        == {"a100_40gb": 128, "a100_80gb": 128}  # fmt: skip

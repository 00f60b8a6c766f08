"""The emulated Tensor Core against answers of an H200's: operands and results of `mma.sync`.

Written by benchmarks/hardware_numerics.py, which compares millions of each instruction; a sample is
stored.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from gemmlab.numerics import MMAS, Mma, decode, mma, number_format

DATA = Path(__file__).parent / "data" / "h200_numerics.npz"
STORED = np.load(DATA)
NOTE = json.loads(str(STORED["note"]))
CASES = [name for name in STORED.files if name.endswith(".a")]


def numbers(words: np.ndarray, dtype: str) -> np.ndarray:
    """Bits as numbers; of TF32 with the low bits that are not read."""
    return words.view(np.float32) if dtype == "tf32" else decode(words, dtype)


def shapes(i: Mma) -> tuple:
    return (i.m, i.k), (i.k, i.n), (i.m, i.n)


def test_what_was_compared():
    assert NOTE["machine"]["device"].startswith("NVIDIA H200")
    assert set(NOTE["mismatches"]) == {name.removesuffix(".a") for name in CASES}
    assert set(NOTE["mismatches"].values()) == {0}
    assert min(NOTE["counts"].values()) >= 10**6
    tensor = {i.name for i in MMAS.values() if i.family == "mma"}
    assert set(NOTE["mismatches"]) == tensor


@pytest.mark.parametrize("case", CASES)
def test_every_stored_answer(case):
    name = case.removesuffix(".a")
    i = MMAS[name]
    a, b = (numbers(STORED[f"{name}.{x}"], i.dtype) for x in "ab")
    c = decode(STORED[f"{name}.c"], i.out_dtype)
    # Each dot product as element (0, 0) of a tile of its own.
    tiles = [
        np.zeros((len(c), *shape), x.dtype) for shape, x in zip(shapes(i), (a, b, c), strict=True)
    ]
    tiles[0][:, 0, :], tiles[1][:, :, 0], tiles[2][:, 0, 0] = a, b, c
    model = mma(*tiles, name, "sm_90")[:, 0, 0].view(number_format(i.out_dtype).words)
    wrong = np.flatnonzero(model != STORED[f"{name}.d"])
    assert wrong.size == 0, [hex(x) for x in (model[wrong[0]], STORED[f"{name}.d"][wrong[0]])]
    assert len(model) >= 200

"""Kernels that others published: whence each is, and that a result which is wrong is noticed."""

import re

import numpy as np
import pytest

from benchmarks.forecast.public import ABOUT, CASES, about, built
from benchmarks.samples.realistic import is_right

PLACES = re.compile(r"[\w./-]+\.cuh?:\d+-\d+|[\w./-]+\.h:\d+-\d+")


def test_each_kernel_says_of_which_lines_it_is_made():
    assert set(about()) == set(CASES)
    for said in about().values():
        assert re.fullmatch("[0-9a-f]{40}", said["commit"])
        assert re.fullmatch("[0-9a-f]{64}", said["cubin_sha256"])
        assert all(map(PLACES.fullmatch, said["parts"]))


def test_nothing_of_theirs_is_kept():
    kept = {path.suffix for path in ABOUT.parent.iterdir() if path.is_file()}
    assert kept == {".py", ".toml"}
    assert not re.search(r"__global__ void \w+\(", ABOUT.read_text("utf-8"))


@pytest.mark.parametrize("name", CASES)
def test_a_launch_that_did_nothing_is_not_right(name):
    made = CASES[name].launch(CASES[name].small)
    with np.errstate(all="ignore"):
        assert not is_right(list(CASES[name].check(*made.arguments)))


def test_another_cubin_is_refused(tmp_path):
    (tmp_path / "spmv.cubin").write_bytes(b"another")
    with pytest.raises(ValueError, match=r"spmv\.cubin has the hash [0-9a-f]{64}, not "):
        built(tmp_path, "spmv")

"""Compiled code that is executed gives the kernels' results, and the hardware's counters."""

import itertools
import json
import math
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.hardware.checks.counters import COUNTERS, hardware
from benchmarks.samples.realistic import CASES, is_right
from gemmlab import cuda
from gemmlab.compiled.sass.compiling import listing
from gemmlab.compiled.sass.execution.machine import counters, launch
from gemmlab.compiled.sass.execution.memory import cost
from gemmlab.model.transactions import SECTOR, l1_cycles, load_wavefronts, sectors
from tests.support.paths import ROOT

pytestmark = pytest.mark.ptxas

RECORDED = ROOT / "benchmarks" / "hardware" / "recorded" / "h200" / "realistic.json"
# One case of each topic, and those whose counters the simulator cannot know from the source: what
# the compiler keeps, merges or hoists is in its code.
CHOSEN = (
    "drawing.rotation_to_the_nearest_pixel", "dynamic.ways_to_pay",
    "dynamic.edit_distances_with_rows_that_change_places", "graphs.triangles_counted",
    "histograms.weighted_histogram_between_edges", "idioms.particles_in_records",
    "idioms.local_arrays_chosen_by_each_thread", "images.bilateral_filter",
    "learning.convolution_in_full", "learning.softmax_of_rows",
    "sparse.product_in_small_dense_blocks", "linear_algebra.factor_of_cholesky",
    "locks.lock_with_tickets", "monte_carlo.prices_of_black_and_scholes",
    "reductions.max_by_shuffles_in_two_levels", "reductions.mean_and_variance_of_welford",
    "scans.scan_of_blelloch", "simulation.wavelets_of_haar", "sorts.merge_sort_from_below",
    "sparse.product_in_compressed_rows_one_thread_each", "strings.hashes_fnv1a",
)  # fmt: skip


def test_costs_are_those_of_the_rules_wherever_lanes_ask():
    """What was counted for lanes elsewhere is kept: it must hold where all of them have moved."""
    rng = np.random.default_rng(0)
    for width, stride, first in itertools.product((4, 16), (0, 1, 2, 33), (1024, 1028, 5 << 40)):
        at = first // width * width + width * (stride * np.arange(64) + rng.integers(0, 9, 64))
        on = rng.random(64) < 0.8
        rows, lanes = at.reshape(2, 32), on.reshape(2, 32)
        shared = cost("shared", "load", at.astype(np.uint64), on, width)
        stored = cost("global", "store", at.astype(np.uint64), on, width)
        pieces = np.sort(np.where(lanes, rows // SECTOR, -1), axis=1)
        assert (shared.cycles == load_wavefronts(rows, lanes, width)).all()
        assert (stored.cycles == l1_cycles(rows, lanes, width)).all()
        assert (stored.sectors == sectors(rows, lanes)).all()
        assert (stored.pieces == pieces).all()


def measured():
    found = {}
    for piece in json.loads(RECORDED.read_text("utf-8"))["pieces"]:
        found |= piece.get("measured", {})
    return found


# Of what numba-cuda-mlir 0.6 does not know, and of what it makes other code, Numba-CUDA's is asked.
ITS_ALONE = (
    "dynamic.edit_distances_with_rows_that_change_places", "locks.lock_with_tickets",
    "scans.scan_of_blelloch", "sorts.merge_sort_from_below",
    "sparse.product_in_small_dense_blocks",
)  # fmt: skip


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.numba_cuda) if name in ITS_ALONE else name
        for name in CHOSEN
    ],
)
def test_results_and_counters_are_the_gpus(name):
    counted = []

    def run(kernel, grid, block, *arguments, shared_bytes=0):
        code = listing(kernel, arguments)
        machine = launch(code, grid, block, *arguments, shared_bytes=shared_bytes)
        counted.append(counters(machine.run(1_000_000)))

    assert is_right(CASES[name](run))
    there = [hardware(one) for one in measured()[name]["counters"]]
    names = [c for c in COUNTERS if c != "shared_bank_conflicts"]
    assert [{c: one[c] for c in names} for one in counted] == [
        {c: one[c] for c in names} for one in there
    ]


@cuda.jit
def doubled(x):
    i = cuda.grid(1)
    x[i] = 2 * x[i]


def test_blocks_can_be_chosen():
    x = np.ones(4 * 64, np.float32)
    launch(listing(doubled, (x,)), 4, 64, x, blocks=[(1, 0, 0), (3, 0, 0)]).run()
    assert x.reshape(4, 64).mean(axis=1).tolist() == [1, 2, 1, 2]


def test_an_access_beyond_an_array_is_named():
    x = np.ones(64, np.float32)
    with pytest.raises(IndexError, match=r"LDG\.E .*is beyond an array of 256 B"):
        launch(listing(doubled, (x,)), 2, 64, x).run()


@cuda.jit
def halved(x, y):
    i = cuda.grid(1)
    y[i] = x[i] * y[i] * np.float32(0.5)


def test_a_factor_in_the_instruction_counts():
    x, y = np.arange(32, dtype=np.float32), np.full(32, 3, np.float32)
    code = listing(halved, (x, y))
    assert any(i.opcode.startswith("FMUL.D2") for i in code.instructions)
    launch(code, 1, 32, x, y).run()
    assert np.array_equal(y, x * 3 / 2)


@cuda.jit
def endless(x):
    while x[0] == 0:
        x[1] += 1


def test_code_without_an_end_is_stopped():
    x = np.zeros(2, np.int32)
    with pytest.raises(RuntimeError, match="not at the end after 1000 instructions"):
        launch(listing(endless, (x,)), 1, 32, x).run(1000)


def test_an_unknown_instruction_is_named():
    x = np.zeros(1, np.float32)
    code = listing(doubled, (x,))
    strange = replace(code.instructions[0], opcode="STRANGE", operands=())
    with pytest.raises(NotImplementedError, match="what STRANGE does is not known here"):
        launch(replace(code, instructions=(strange, *code.instructions[1:])), 1, 1, x).run()


def in_float16(a, b, y):
    """Functions of a half, or of two; where x is no number both branches leave row 12 alone."""
    i = cuda.grid(1)
    x, z = a[i], b[i]
    y[0, i], y[1, i], y[2, i] = x / z, math.sqrt(x), cuda.fp16.hrsqrt(x)
    y[3, i], y[4, i], y[5, i] = math.exp(x), cuda.fp16.hexp2(x), cuda.fp16.hexp10(x)
    y[6, i], y[7, i], y[8, i] = math.log(x), math.log2(x), math.log10(x)
    y[9, i], y[10, i] = cuda.fp16.hrcp(x), cuda.fp16.hfma(x, z, x)
    y[11, i] = cuda.fp16.hmax(x, z) - cuda.fp16.hmin(abs(x), -z)
    if x > z:
        y[12, i] = math.floor(x)
    if x <= z:
        y[12, i] = math.ceil(z)


@pytest.mark.numba_cuda
def test_float16_is_computed_without_nvrtc():
    """In the last place only where what the header mends is not what exact functions need."""
    rng, n = np.random.default_rng(0), 1024
    x = (4 * rng.standard_normal(n)).astype(np.float16)
    z = (rng.standard_normal(n) * np.exp2(rng.integers(-14, 15, n))).astype(np.float16)
    x[:4], y = (0, np.inf, np.nan, 6e-8), np.zeros((13, n), np.float16)
    x[4:7], z[4:7] = (6.8426e-5, 1.46627e-4, 4.065e-4), (328, 328, 440)  # a step of Newton's tells
    launch(listing(in_float16, (x, z, y)), n // 128, 128, x, z, y).run(100_000)
    a, b = x.astype(float), z.astype(float)
    with np.errstate(all="ignore"):
        functions = a / b, np.sqrt(a), 1 / np.sqrt(a), np.exp(a), np.exp2(a), 10**a, np.log(a)
        functions += np.log2(a), np.log10(a), 1 / a, a * b + a
        right = np.array(functions).astype(np.float16)
        right = [*right, np.fmax(x, z) - np.fmin(abs(x), -z)]
        right.append(np.where(x > z, np.floor(x), np.where(x <= z, np.ceil(z), np.float16(0))))
        off = ~((y == right) | np.isnan(y) & np.isnan(right))
        near = np.abs(y - right) <= np.spacing(np.abs(right))
    assert set(off.any(axis=1).nonzero()[0]) <= {3, 6, 8}  # exp, log, log10
    assert off.sum() <= 4
    assert near[off].all()


@pytest.mark.numba_cuda
def test_what_of_float16_is_not_compiled_here_is_named():
    def sines(x):
        x[0] = math.sin(x[0]) + math.tanh(x[0])

    with pytest.raises(NotImplementedError, match=r"^hsin, htanh: Numba-CUDA .* in float32"):
        listing(sines, (np.zeros(32, np.float16),), compiler="numba-cuda")

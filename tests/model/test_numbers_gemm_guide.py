"""The numbers of NVIDIA's Matrix Multiplication Background User's Guide, computed.

What it measured (2 to 4 times from cuBLAS 10.2 to 11.0, the curves of its figures) follows from no
model: `gemmlab.model.literature` keeps it. One statement does not follow: see figure 5.
"""

from dataclasses import replace

import numpy as np
import pytest

from gemmlab.device import device, names
from gemmlab.model import predict, predict_all
from gemmlab.model.alignment import Multiples, loads_per_16_bytes, multiples
from gemmlab.model.in_tiles import TILES, choose_tile, in_tiles, tile_efficiency, tile_intensity
from gemmlab.model.quantization import quantization, tiles_per_sm
from gemmlab.problem import Gemm, Gemms
from tests.support.as_printed import Number, agrees, each

V100, A100 = device("v100"), device("a100_80gb")
LARGE = (256, 128)  # the tile that figures 5, 7 and 8 force


def half(m, n, k):
    return Gemm(m, n, k, dtype="float16")


def cut(n, m, k=4096):
    """The tiles of a product of sections 3.1 and 3.2."""
    return quantization(half(m, n, k), A100, LARGE)


def square(m, n):
    """Figure 6: C in tiles of 128×128."""
    return quantization(half(m, n, 4096), A100, (128, 128))


EDGE, NEXT = square(256, 256), square(257, 256)  # its parts (a) and (b)

NUMBERS = [
    Number("2, ops:byte ratio of V100", "138.9", lambda: V100.ops_per_byte("float16")),
    Number("2, 8192×128×8192", "124.1", lambda: half(8192, 128, 8192).intensity),
    Number("2, 8192×8192×8192", "2730", lambda: half(8192, 8192, 8192).intensity),
    Number("2, operations of an FMA", "2", lambda: half(1, 1, 1).flops),
    Number("2.2, elements of FP16 in 16 bytes", "8", lambda: multiples("float16").efficient),
    Number("2.2, the same on an A100", "64", lambda: multiples("float16").on_a100),
    Number(
        "2.3, parallelism of 64×64 over 256×128",
        "8",
        lambda: (
            quantization(half(6912, 2048, 4096), A100, (64, 64)).tiles
            / quantization(half(6912, 2048, 4096), A100, LARGE).tiles
        ),
    ),
    Number("3.1, tiles of figure 6 (a)", "4", lambda: EDGE.tiles),
    Number("3.1, thread blocks of figure 6 (b)", "6", lambda: NEXT.tiles),
    Number(
        "3.1, executed operations, (b) over (a)",
        "1.5",
        lambda: NEXT.executed_flops / EDGE.executed_flops,
    ),
    Number(
        "3.1, percent more operations needed",
        "0.39",
        lambda: 100 * (NEXT.problem.flops / EDGE.problem.flops - 1),
    ),
    Number("3.1, tiles a row at N = 128", "1", lambda: cut(128, 27648).across),
    Number("3.1, tiles a row at N = 136", "2", lambda: cut(136, 27648).across),
    Number("3.1, percent of the second tile", "6.25", lambda: 100 * cut(136, 27648).last_column),
    Number("3.2, SMs of an A100", "108", lambda: A100.sms),
    Number("3.2, thread blocks of 256×128 an SM", "1", lambda: tiles_per_sm(A100, LARGE)),
    Number("3.2, tiles of a wave", "108", lambda: cut(1536, 2304).wave),
    Number("3.2, tiles per column", "9", lambda: cut(1536, 2304).down),
    Number("3.2, tiles per row at N = 1536", "12", lambda: cut(1536, 2304).across),
    Number("3.2, tiles at N = 1536", "108", lambda: cut(1536, 2304).tiles),
    Number("3.2, waves at N = 1536", "1", lambda: cut(1536, 2304).waves),
    Number("3.2, tiles at N = 1537", "117", lambda: cut(1537, 2304).tiles),
    Number("3.2, tiles at N = 1664", "117", lambda: cut(1664, 2304).tiles),
    Number("3.2, tail at N = 1537", "9", lambda: cut(1537, 2304).tail),
    Number("3.2, tail at N = 1664", "9", lambda: cut(1664, 2304).tail),
    Number("3.2, percent of the SMs in the tail", "8.33", lambda: 100 * cut(1664, 2304).tail_use),
]


def test_numbers_agree_as_they_are_printed():
    assert agrees(138.888, "138.9")
    assert agrees(2730.67, "2730")
    assert agrees(2730.67, "2731")
    assert not agrees(138.888, "138.7")
    assert not agrees(2732.0, "2730")


@each(NUMBERS)
def test_number(value, printed):
    assert agrees(value(), printed)


# ------------------------------------------------------------------------ 2, math and memory bounds


def test_2_intensity_is_mnk_over_mk_nk_mn():
    m, n, k = np.random.default_rng(1).integers(1, 9000, (3, 50))
    formula = m * n * k / (m * k + n * k + m * n)
    assert Gemms(m, n, k, dtype="float16").intensity == pytest.approx(formula, rel=1e-15)


def test_2_which_of_the_two_products_is_limited_by_what():
    assert predict(half(8192, 128, 8192), V100).limiter == "DRAM"
    assert predict(half(8192, 8192, 8192), V100).limiter == "math"


@pytest.mark.parametrize("name", names())
def test_2_products_with_vectors_are_always_limited_by_memory(name):
    """Of large vectors, that is: the smallest are a round trip to DRAM where that is known."""
    gpu = replace(device(name), dram_latency=None)
    size = np.arange(1, 20_000, 7)
    for shape in ((size, 1, 4096), (1, size, 4096), (4096, 1, size), (1, 4096, size)):
        found = predict_all(Gemms(*shape, dtype="float16"), gpu)
        assert np.all(found.intensity < 1)
        assert set(found.limiter) == {"DRAM"}


def test_2_alpha_and_beta_do_not_count_where_k_is_large():
    p = Gemm(512, 512, 4096, alpha=2, beta=1)
    assert p.scaling_flops / p.flops == 3 / (2 * p.k) < 1e-3


# ----------------------------------------------------------------------------------- 2.2, alignment


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("int8", Multiples(16, 16, 128)),
        ("float16", Multiples(8, 8, 64)),
        ("tf32", Multiples(None, 4, 32)),
        ("float64", Multiples(None, 2, 16)),
    ],
)
def test_2_2_table_1(name, row):
    assert multiples(name) == row


def test_figure_2_multiples_of_8_are_fastest_and_even_k_beats_odd_k():
    loads = {k % 8: loads_per_16_bytes(k, "float16") for k in range(4096, 4104)}
    assert min(loads, key=loads.get) == 0
    odd, even = [loads[r] for r in (1, 3, 5, 7)], [loads[r] for r in (2, 4, 6)]
    assert max(even) < min(odd)
    assert loads[4] < loads[2] == loads[6]  # 8 bytes help more than 4


# --------------------------------------------------------------------------------------- 2.3, tiles


def test_2_3_the_tiles_stand_in_the_order_of_their_efficiency():
    for gpu in (V100, A100):
        listed = [round(tile_efficiency(tile, "float16", gpu), 12) for tile in TILES]
        assert listed == sorted(listed, reverse=True)
    reuse = [tile_intensity(tile, "float16")["l2"] for tile in TILES]
    assert reuse == sorted(reuse, reverse=True)
    assert reuse[0] > reuse[-1]


def test_figure_3_large_products_run_faster_and_time_grows_less_than_the_footprint():
    n = 256 * np.arange(1, 33)
    best = np.min([in_tiles(Gemms(n, n, 4096, dtype="float16"), A100, t).seconds for t in TILES], 0)
    rate = 2 * n * n * 4096 / best
    assert rate[-1] > 2 * rate[0]
    assert best[3] / best[0] < n[3] ** 2 / n[0] ** 2


def test_figure_4_speed_rises_with_k_at_a_large_footprint():
    k = 2 ** np.arange(5, 15)
    rate = in_tiles(Gemms(8192, 8192, k, dtype="float16"), A100, LARGE).flops_per_second
    assert np.all(np.diff(rate) >= 0)
    assert rate[-1] > 4 * rate[0]  # C is stored once for a short sum as for a long one


def test_figure_5_the_large_tile_runs_in_full_waves():
    """The guide says that it "runs exactly one tile per SM": 432 tiles are four for each of 108.

    One at a time is what follows: a second one finds no registers.
    """
    q = quantization(half(6912, 2048, 4096), A100, LARGE)
    assert (q.tiles, q.per_sm, q.waves, q.tail_use, q.use) == (432, 1, 4, 1.0, 1.0)


def test_figure_5_larger_tiles_run_more_efficiently():
    p = half(6912, 2048, 4096)
    rates = [
        float(in_tiles(p, A100, tile).flops_per_second) for tile in (LARGE, (128, 64), (64, 64))
    ]
    assert rates == sorted(rates, reverse=True)
    assert choose_tile(p, A100).tile == LARGE
    assert choose_tile(half(256, 256, 4096), A100).tile == (64, 64)  # a substantially smaller one


# --------------------------------------------------------------------------- 3.1, tile quantization


def test_figure_6_two_of_six_tiles_waste_most_of_their_work():
    assert NEXT.last_row == 1 / 128
    assert NEXT.across == 2  # tiles in that last row
    assert EDGE.useful == 1
    assert round(NEXT.useful, 3) == 0.669


def test_figure_7_time_is_constant_while_the_number_of_tiles_is():
    n = np.arange(136, 257, 8)
    found = in_tiles(Gemms(27648, n, 4096, dtype="float16"), A100, LARGE)
    assert set(found.quantization.across) == {2}
    assert len(set(found.times["math"])) == 1
    assert np.all(np.diff(found.flops_per_second) > 0)
    before = in_tiles(half(27648, 128, 4096), A100, LARGE)
    assert found.times["math"][0] == 2 * before.times["math"]
    assert found.flops_per_second[0] < 0.7 * before.flops_per_second  # DRAM limits that one


def test_figure_7_narrower_tiles_waste_less():
    wide, narrow = (quantization(half(27648, 136, 4096), A100, (256, bn)) for bn in (128, 64))
    assert (wide.useful, narrow.useful) == (136 / 256, 136 / 192)


# --------------------------------------------------------------------------- 3.2, wave quantization


def test_figure_8_speed_halves_and_time_doubles_at_1544():
    before, after = (in_tiles(half(2304, n, 4096), A100, LARGE) for n in (1536, 1544))
    assert after.seconds / before.seconds == pytest.approx(2)
    assert after.flops_per_second / before.flops_per_second == pytest.approx(0.5, rel=1e-2)


def test_figure_8_the_jumps_come_after_whole_waves():
    n = np.arange(8, 6401, 8)
    found = in_tiles(Gemms(2304, n, 4096, dtype="float16"), A100, LARGE)
    last = n[:-1][np.diff(found.quantization.waves) > 0]
    assert last.tolist() == [1536, 3072, 4608, 6144]
    assert n[:-1][np.diff(found.times["math"]) > 0].tolist() == last.tolist()
    assert set(found.quantization.tail_use[np.isin(n, last)]) == {1.0}

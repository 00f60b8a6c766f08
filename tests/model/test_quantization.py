"""Tiles and waves: what is wasted at the edges of C and in the last wave, and what tile is best."""

from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest

from gemmlab import kernels, records
from gemmlab.device import device, names
from gemmlab.formats import FORMATS
from gemmlab.model import occupancy, predict
from gemmlab.model.in_tiles import (
    RESOLUTION,
    TILES,
    choose,
    choose_split,
    choose_tile,
    feed,
    in_tiles,
    loaded,
    partial_sums,
    passed,
    tile_efficiency,
    warp_tiles,
)
from gemmlab.model.quantization import quantization, tiles_per_sm
from gemmlab.problem import Gemm, Gemms
from gemmlab.tiling import Tiling

A100, H200, V100 = device("a100_80gb"), device("h200"), device("v100")
SIZES = np.random.default_rng(5).integers(1, 5000, (3, 40))


def covered(problem, tile):
    """The elements of C in each tile, found by cutting C."""
    (bm, bn), c = tile, np.zeros((problem.m, problem.n))
    return [
        c[row : row + bm, col : col + bn].size
        for row in range(0, problem.m, bm)
        for col in range(0, problem.n, bn)
    ]


@pytest.mark.parametrize("shape", [(1, 1), (128, 64), (129, 64), (300, 513), (64, 1000)])
@pytest.mark.parametrize("tile", [(128, 64), (64, 64), (1, 7)])
def test_tiles_are_those_that_cut_c(shape, tile):
    p = Gemm(*shape, 10)
    q, parts = quantization(p, A100, tile, per_sm=1), covered(p, tile)
    assert q.tiles == q.down * q.across == len(parts)
    assert q.useful == pytest.approx(sum(parts) / (len(parts) * tile[0] * tile[1]))
    assert q.last_row * q.last_column == pytest.approx(parts[-1] / (tile[0] * tile[1]))
    assert q.executed_flops == Tiling(block=(*tile, 1)).padded_flops(p)


@pytest.mark.parametrize("blocks", [1, 7, 8, 9, 12, 16, 17])
@pytest.mark.parametrize("per_sm", [1, 2])
def test_waves_are_those_of_a_queue(blocks, per_sm):
    """Blocks that start together end together: each wave takes what fits."""
    gpu, left, seen = replace(A100, sms=4), blocks, []
    while left:
        seen.append(min(left, 4 * per_sm))
        left -= seen[-1]
    q = quantization(Gemm(16 * blocks, 16, 16), gpu, (16, 16), per_sm)
    assert (q.tiles, q.waves, q.tail, q.wave) == (blocks, len(seen), seen[-1], 4 * per_sm)
    assert q.tail_use == seen[-1] / q.wave
    assert q.wave_use == pytest.approx(np.mean(seen) / q.wave)
    assert q.waves == occupancy.waves(gpu, blocks, per_sm)
    assert q.use == q.useful * q.wave_use


def test_many_products_have_the_numbers_of_one():
    many = Gemms(*SIZES, dtype="float16")
    fields = ("tiles", "useful", "last_row", "last_column", "waves", "tail", "wave_use", "use")
    for gpu, tile, split in ((A100, (256, 128), 1), (H200, (64, 64), 3), (device("t4"), (1, 7), 1)):
        q, t = quantization(many, gpu, tile, split=split), in_tiles(many, gpu, tile, split)
        for i in range(len(many)):
            alone = quantization(many[i], gpu, tile, split=split)
            assert all(getattr(q, x)[i] == getattr(alone, x) for x in fields)
            one = in_tiles(many[i], gpu, tile, split)
            assert (t.seconds[i], t.limiter[i]) == (one.seconds, one.limiter)
            assert {x: time[i] for x, time in t.times.items()} == one.times
            assert t.workspace[i] == one.workspace


def test_the_sums_of_a_tile_limit_how_many_an_sm_holds():
    assert tiles_per_sm(A100, (128, 128), "float64") == 1
    assert tiles_per_sm(A100, (256, 256), "float16") == 1
    assert tiles_per_sm(A100, (1, 1)) == A100.blocks_per_sm
    with pytest.raises(
        ValueError, match="256×256 sums in float32 is too large.* 65536 registers.*A100"
    ):
        tiles_per_sm(A100, (256, 256))
    for tile in TILES:  # an upper bound: a kernel that uses nothing else has no more
        threads = 32 * max(4, tile[0] * tile[1] // (32 * 128))
        own = tile[0] * tile[1] // threads + 1
        resident = occupancy.resident_blocks(A100, threads, registers=own)
        assert tiles_per_sm(A100, tile) >= resident


def test_bad_tiles_are_refused():
    p = Gemm(64, 64, 64)
    for tile, split, words in (((0, 1), 1, "bm=0"), ((1, 0), 1, "bn=0"), ((1, 1), 0, "split=0")):
        with pytest.raises(ValueError, match=words):
            quantization(p, A100, tile, split=split)
    with pytest.raises(ValueError, match="per_sm=0"):
        quantization(p, A100, (16, 16), per_sm=0)


# ---------------------------------------------------------------------------------- time in tiles


@pytest.mark.parametrize("name", names())
def test_tiles_never_beat_the_bounds_that_hold_for_all(name):
    gpu = device(name)
    for m, n, k in SIZES.T[:10]:
        for dtype in gpu.peak:
            p = Gemm(m, n, k, dtype=dtype)
            for tile in ((128, 128), (64, 64), (64, 128)):
                for split in (1, 5):
                    assert in_tiles(p, gpu, tile, split).seconds >= predict(p, gpu).seconds


def test_shared_memory_is_written_once_and_read_by_each_part():
    for tile in (*TILES, (96, 64), (48, 40)):
        for readers in (1, 4):
            parts, (wm, wn) = warp_tiles(tile, readers=readers)
            assert parts * wm * wn >= tile[0] * tile[1]
            assert wm * wn <= 32 * 128 * readers
            down, across = -(-tile[0] // wm), -(-tile[1] // wn)
            assert down * across == parts
            read = across * tile[0] + down * tile[1]  # A once a column of parts, B once a row
            if (tile[0] % wm, tile[1] % wn) == (0, 0):
                assert passed(tile, "float16", readers=readers) == 2 * (sum(tile) + read)


def test_the_larger_a_tile_the_more_efficient_and_the_less_parallel():
    p = Gemm(6912, 2048, 4096, dtype="float16")
    by_size = sorted(TILES, key=lambda t: t[0] * t[1])
    for gpu in (V100, A100):
        efficiency = [tile_efficiency(tile, "float16", gpu) for tile in by_size]
        assert efficiency == sorted(efficiency)
        assert efficiency[0] < efficiency[-1]
    tiles = [quantization(p, A100, tile).tiles for tile in by_size]
    assert tiles == sorted(tiles, reverse=True)


def test_sums_of_8_bytes_take_two_registers():
    assert warp_tiles((128, 128), "float64") == (8, (32, 64))
    assert choose_tile(Gemm(8192, 8192, 8192, dtype="float64"), A100).tile == (128, 128)


def test_hopper_feeds_its_tensor_cores_in_its_own_way():
    assert feed(H200, "float16") == feed(H200, "tf32") == (4, 2)
    assert feed(H200, "float32") == feed(A100, "float16") == (1, 1)
    assert loaded((128, 128), "float16", cluster=2) == 0.75 * loaded((128, 128), "float16")
    assert passed((256, 128), "float16", readers=4) < passed((256, 128), "float16")


def test_full_waves_of_tiles_run_as_fast_as_their_efficiency():
    for gpu in (V100, A100):
        for tile in TILES:
            p = Gemm(tile[0] * gpu.sms * 2, tile[1] * 8, 8192, dtype="float16")
            rate = in_tiles(p, gpu, tile).flops_per_second / gpu.peak_of("float16")
            assert rate == pytest.approx(tile_efficiency(tile, "float16", gpu), rel=2e-2)


def test_what_limits_tiles():
    p = Gemm(6912, 2048, 4096, dtype="float16")
    assert in_tiles(p, A100, (256, 128)).limiter == "math"
    assert in_tiles(p, A100, (64, 64)).limiter == "shared memory"
    assert in_tiles(Gemm(6912, 8, 4096, dtype="float16"), A100, (64, 64)).limiter == "DRAM"
    assert in_tiles(p, H200, (64, 64)).limiter == "L2"
    assert in_tiles(Gemm(8, 8, 8), H200, (64, 64)).limiter == "latency"


def test_time_jumps_where_a_wave_is_full():
    n = np.arange(8, 2048, 8)
    found = in_tiles(Gemms(2304, n, 4096, dtype="float16"), A100, (256, 128))
    jumps = n[1:][np.diff(found.times["math"]) > 0]
    assert jumps.tolist() == [1544]
    assert set(np.diff(found.quantization.waves)) == {0, 1}


# ------------------------------------------------------------------------------------- choosing


def test_a_split_stores_sums_and_adds_them_up():
    p = Gemm(64, 96, 8192, dtype="float16")
    assert partial_sums(p, 1) == 0
    assert partial_sums(p, 7) == 7 * 64 * 96 * 4
    whole, split = (
        in_tiles(p, H200, (64, 64)),
        in_tiles(p, H200, (64, 64), split=16),
    )
    assert whole.reduction == 0
    assert split.reduction >= H200.launch_interval + H200.dram_latency
    assert split.quantization.tiles == 16 * whole.quantization.tiles
    assert split.times["math"] == whole.times["math"] / 16  # each part on an SM of its own
    big = Gemm(8192, 8192, 512)
    assert partial_sums(big, 2) > H200.l2_bytes
    parts = in_tiles(big, H200, (128, 128), 2)
    stored_and_read = 2 * partial_sums(big, 2) / H200.dram_bandwidth
    assert parts.reduction == pytest.approx(H200.launch_interval + stored_and_read)
    assert parts.times["dram"] == big.bytes / H200.dram_bandwidth
    small = Gemm(1024, 1024, 512)
    at_l2 = H200.launch_interval + 2 * partial_sums(small, 2) / H200.l2_bandwidth
    assert in_tiles(small, H200, (128, 128), 2).reduction == pytest.approx(at_l2)
    t4 = device("t4")  # no bandwidth of its L2 is known, and no interval
    there = 2 * partial_sums(small, 2) / t4.dram_bandwidth
    assert in_tiles(small, t4, (128, 128), 2).reduction == pytest.approx(there)


@pytest.mark.parametrize("gpu", [A100, H200, V100], ids=lambda d: d.name)
def test_what_is_chosen_is_not_slower_than_any_other(gpu):
    for m, n, k in SIZES.T[:4]:
        p = Gemm(m, n, k, dtype="float16")
        least = min(in_tiles(p, gpu, tile).seconds for tile in TILES)
        assert choose_tile(p, gpu).seconds <= (1 + RESOLUTION) * least
        for tile in ((64, 64), (256, 128)):
            found = choose_split(p, gpu, tile)
            splits = [in_tiles(p, gpu, tile, s).seconds for s in range(1, gpu.sms + 1)]
            assert found.seconds == min(splits)
            assert found.quantization.split == 1 + splits.index(min(splits))  # the fewest parts
            assert found.tile == tile
        both = choose(p, gpu, tiles=TILES[::7])
        assert both.seconds <= (1 + RESOLUTION) * choose_split(p, gpu, (64, 64)).seconds


def test_large_products_take_large_tiles_and_small_ones_small_tiles():
    chosen = [choose_tile(Gemm(n, n, 4096, dtype="float16"), A100) for n in (256, 1024, 8192)]
    areas = [c.tile[0] * c.tile[1] for c in chosen]
    assert areas == sorted(areas)
    assert chosen[0].tile == (64, 64)
    assert chosen[-1].tile == (256, 128)


def test_k_is_split_where_m_and_n_are_small_and_k_is_large():
    for dtype in FORMATS:
        if dtype in H200.peak:
            assert choose(Gemm(64, 64, 65536, dtype=dtype), H200).split > 16
            assert choose(Gemm(8192, 8192, 8192, dtype=dtype), H200).split == 1
    assert choose(Gemm(64, 64, 1), H200).split == 1


@pytest.mark.parametrize("kernel", [kernels.warp_tiled, kernels.pipelined], ids=lambda k: k.name)
def test_the_tile_chosen_is_the_fastest_that_was_recorded(kernel):
    """Of the two rungs that are bounded by arithmetic; in 9 of 10 groups, and within 5 %."""
    groups = defaultdict(lambda: defaultdict(list))
    for m in records.load("h200", kernel):
        groups[m.problem][m.tiling.block[:2]].append(m.seconds)
    several = {p: times for p, times in groups.items() if len(times) > 1}
    good = 0
    for problem, times in several.items():
        largest_first = sorted(times, key=lambda tile: -tile[0] * tile[1])
        chosen = choose_tile(problem, H200, largest_first).tile
        good += min(times[chosen]) <= 1.05 * min(map(min, times.values()))
    assert len(several) >= 10
    assert good >= 0.9 * len(several)

"""Predictions: the worked numbers of GPU matrix multiplication, limits, and bad input."""

from collections import Counter
from dataclasses import dataclass, replace
from itertools import pairwise

import pytest

from gemmlab import kernels
from gemmlab.device import device
from gemmlab.formats import FORMATS
from gemmlab.model import RESOURCES, occupancy, predict, traffic
from gemmlab.model.traffic import Work
from gemmlab.problem import Gemm
from gemmlab.tiling import Tiling

V100 = device("v100")


def test_ops_per_byte_of_v100():
    assert round(V100.ops_per_byte("float16"), 1) == 138.9
    assert round(V100.ops_per_byte("float16", "l2")) == 40


@pytest.mark.parametrize("name", ["a100_40gb", "a100_80gb"])
def test_peaks_of_a100_follow_from_sms_and_clock(name):
    d = device(name)
    for dtype, expected in (("tf32", 156e12), ("float16", 312e12)):
        rate = d.sms * d.clock_of(dtype) * d.flop_per_cycle_per_sm[dtype]
        assert round(rate / 1e12) * 1e12 == expected == d.peak_of(dtype)


def test_which_of_the_two_worked_products_is_limited_by_dram():
    narrow = predict(Gemm(8192, 128, 8192, dtype="float16"), "v100")
    square = predict(Gemm(8192, 8192, 8192, dtype="float16"), V100)
    assert (round(narrow.intensity, 1), narrow.limiter) == (124.1, "DRAM")
    assert (int(square.intensity), square.limiter) == (2730, "math")
    assert narrow.seconds == narrow.bytes["dram"] / V100.dram_bandwidth
    assert square.seconds == square.flops / V100.peak_of("float16")


@pytest.mark.parametrize("shape", [(8192, 1, 8192), (1, 8192, 8192)])
@pytest.mark.parametrize("name", ["v100", "t4", "a100_80gb", "h200", "rtx4090"])
def test_matrix_vector_products_are_limited_by_dram(shape, name):
    p = predict(Gemm(*shape, dtype="float16"), name)
    assert p.intensity < 1
    assert p.limiter == "DRAM"


def test_one_thread_is_limited_by_latency():
    """One thread that moves a few bytes and adds 8000 products: 1000 FLOP/B, and yet idle pipes.

    Intensity says math; the chain of dependent FMAs says otherwise.
    """
    alone = Tiling(block=(1, 1, 1))
    p = predict(Gemm(1, 1, 8000), V100, kernel=kernels.naive, tiling=alone)
    assert p.limiter == "latency"
    chain = 8000 * V100.fma_latency_cycles / V100.clock
    assert p.seconds == p.times["latency"] >= chain
    assert p.flops_per_second < 1e-4 * V100.peak_of("float32")


@pytest.mark.parametrize("kernel", kernels.LADDER, ids=lambda k: k.name)
@pytest.mark.parametrize("name", ["v100", "t4", "a100_40gb", "h100_sxm", "h200", "rtx2060"])
def test_a_kernel_is_never_predicted_faster_than_the_ideal(kernel, name):
    for shape in ((1, 1, 1), (16, 16, 4096), (256, 256, 256), (1000, 50, 333), (4096, 4096, 4096)):
        p, tiling = Gemm(*shape), kernel.default
        if kernel.shared_bytes(p, tiling) > device(name).shared_bytes_per_block:
            with pytest.raises(ValueError, match="B of shared memory is too large"):
                predict(p, name, kernel=kernel)
            tiling = replace(tiling, stages=2)
        ideal, real = predict(p, name), predict(p, name, kernel=kernel, tiling=tiling)
        assert real.seconds >= ideal.seconds
        assert real.flops == ideal.flops == p.flops
        assert set(real.times) >= set(ideal.times)
        assert real.bytes["dram"] == ideal.bytes["dram"]
        assert real.seconds == max(real.times.values()) == real.times[real.bottleneck]
        assert real.limiter in (*RESOURCES.values(), "shared memory")


@pytest.mark.parametrize(
    ("kernel", "limiter"),
    [(kernels.naive, "L1"), (kernels.coalesced, "L1"), (kernels.tiled, "shared memory")],
)
def test_l1_and_shared_memory_are_told_apart(kernel, limiter):
    p = predict(Gemm(4096, 4096, 4096), "h200", kernel)
    assert p.bottleneck == "l1"
    assert p.limiter == limiter
    assert (p.shared == 0) == (limiter == "L1")
    assert p.shared < 1  # copies pass through the unit, too


def test_tiles_reuse_what_they_load():
    """A tile of t reads each element of A and B n/t times: traffic falls by t."""
    n = 512
    c_sectors = n * n * 4 // 32
    for tile in (8, 16, 32):
        p = predict(Gemm(n, n, n), "h200", kernel=kernels.tiled, tiling=Tiling.square(tile))
        assert p.counters["global_load_bytes"] == 2 * 4 * n**3 // tile
        assert p.counters["global_load_sectors"] == 2 * 4 * n**3 // tile // 32
        assert p.counters["global_store_sectors"] == c_sectors
        assert p.counters["barriers"] == 2 * (n // tile) ** 3
    assert predict(Gemm(n, n, n), "h200", kernel=kernels.naive).counters["global_load_bytes"] == (
        2 * 4 * n**3
    )


def test_beta_reads_c_once():
    for kernel in (None, *kernels.LADDER):
        without = predict(Gemm(96, 80, 64), V100, kernel=kernel)
        with_c = predict(Gemm(96, 80, 64, beta=0.5), V100, kernel=kernel)
        assert with_c.bytes["dram"] - without.bytes["dram"] == 4 * 96 * 80
        if kernel is not None:
            more = with_c.counters["global_load_bytes"] - without.counters["global_load_bytes"]
            assert more == 4 * 96 * 80


def test_bad_input_is_quoted():
    p = Gemm(64, 64, 64)
    with pytest.raises(ValueError, match="'v101'.*a100_40gb.*v100"):
        predict(p, "v101")
    with pytest.raises(ValueError, match="tf32.*float64, float32, float16"):
        predict(Gemm(64, 64, 64, dtype="tf32"), V100)
    with pytest.raises(ValueError, match="16×16×16.*without a kernel"):
        predict(p, V100, tiling=Tiling.square(16))
    with pytest.raises(TypeError, match=r"tiling=\(16, 16, 16\)"):
        predict(p, V100, kernel=kernels.tiled, tiling=(16, 16, 16))
    with pytest.raises(ValueError, match=r"32×16×16.*square"):
        predict(p, V100, kernel=kernels.tiled, tiling=Tiling(block=(32, 16, 16)))
    with pytest.raises(ValueError, match="4096 threads is too large.*1024"):
        predict(p, V100, kernel=kernels.naive, tiling=Tiling(block=(64, 64, 1)))


def test_a_problem_that_a_kernel_does_not_compute_is_not_predicted():
    for given, words in (
        ({"dtype": "float16"}, "computes float32, not float16"),
        ({"accumulate": "float64"}, "computes float32, not float32 summed in float64"),
        ({"out_dtype": "float16"}, "computes float32, not float32 to float16"),
        ({"layout": "nt"}, "naive takes operands in layout nn, not nt"),
    ):
        with pytest.raises(ValueError, match=words):
            predict(Gemm(64, 64, 64, **given), V100, kernels.naive)


def test_a_kernel_on_a_device_with_unknown_latencies():
    """What a driver does not say is left out, not guessed."""
    d = replace(V100, fma_latency_cycles=None, dram_latency=None, l2_bandwidth=None)
    p = predict(Gemm(256, 256, 256), d, kernel=kernels.tiled)
    assert p.times["latency"] == 0
    assert "l2" not in p.times


def test_a_kernel_for_gpus_is_not_predicted_on_a_cpu():
    cpu = replace(V100, kind="cpu", title="Some CPU", clock=None, threads_per_block=None)
    with pytest.raises(ValueError, match=r"naive.*Some CPU"):
        predict(Gemm(64, 64, 64), cpu, kernel=kernels.naive)
    assert predict(Gemm(64, 64, 64), cpu).seconds > 0


@pytest.mark.parametrize("dtype", FORMATS)
def test_every_format_with_a_peak_is_predicted(dtype):
    for d in map(device, ("v100", "h200")):
        if dtype in d.peak:
            assert predict(Gemm(64, 64, 64, dtype=dtype), d).times["math"] == (
                2 * 64**3 / d.peak[dtype]
            )
        else:
            with pytest.raises(ValueError, match=f"no peak for dtype '{dtype}'"):
                predict(Gemm(64, 64, 64, dtype=dtype), d)


@dataclass(frozen=True)
class Emulating:
    """A kernel that makes float32 products of three in float16, and splits its operands before."""

    name: str = "emulating"
    splits: bool = False

    def check_problem(self, problem):
        assert problem.arithmetic == Gemm(1, 1, 1).arithmetic

    def choose(self, tiling, problem=None, device=None):
        return Tiling(block=(128, 128, 32))

    def configure(self, problem, tiling):
        return tiling.grid(problem), (256, 1)

    def launch(self, problem, tiling, device):
        return self.configure(problem, tiling)

    def shared_bytes(self, problem, tiling):
        return 4 * 2 * 128 * 32

    def work(self, problem, tiling):
        splits = 4 * (problem.m * problem.k + problem.k * problem.n)
        flops = {"float16": 3 * problem.flops, "float32": splits}
        return Work(Counter(), flops, l2_bytes=0, l1_wavefronts=0, chain=(1, 1))


def test_a_kernel_on_several_pipes_takes_as_long_as_the_slowest():
    p, gpu = Gemm(8192, 8192, 8192), device("h200")
    emulated = predict(p, gpu, Emulating())
    assert emulated.flops == p.flops
    assert emulated.times["math"] == pytest.approx(
        3 * p.flops / gpu.peak["float16"] * 32 * gpu.sms / 4096, rel=1e-12
    )  # 4096 blocks on 132 SMs: one SM has 32
    assert emulated.flops_per_second > 4 * gpu.peak["float32"]
    with pytest.raises(ValueError, match="Tesla V100.* has no peak for dtype 'tf32'|V100"):
        predict(p, V100, OnTf32())


def test_the_order_of_the_pipes_does_not_count():
    class Turned(Emulating):
        def work(self, problem, tiling):
            work = super().work(problem, tiling)
            return replace(work, flops=dict(reversed(work.flops.items())))

    p = Gemm(8192, 8192, 8192)
    assert predict(p, "h200", Turned()).times == predict(p, "h200", Emulating()).times


def test_shared_memory_limits_the_blocks_that_wait_together():
    """32 KB, and 1 KB of the system's, for each block of 256 threads: 6 on an SM, not 8."""
    gpu = device("h200")
    chain = gpu.dram_latency + gpu.fma_latency_cycles / gpu.clock
    found = predict(Gemm(8192, 8192, 8192), gpu, Emulating()).times["latency"]
    assert found == pytest.approx(-(-4096 // (6 * gpu.sms)) * chain, rel=1e-12)


def test_bytes_of_shared_memory_are_loaded_and_stored():
    p = predict(Gemm(128, 128, 128), V100, kernels.tiled)
    passes = [p.counters[f"shared_{op}_wavefronts"] for op in ("load", "store")]
    assert all(passes)
    assert p.bytes["shared"] == 128 * sum(passes)


class OnTf32(Emulating):
    def work(self, problem, tiling):
        return replace(super().work(problem, tiling), flops={"tf32": problem.flops})


def test_resident_blocks():
    """Each of the four limits of a V100 binds in turn: 2048 threads, 32 blocks, 96 KB, 65536."""
    assert occupancy.resident_blocks(V100, 256) == 8
    assert occupancy.resident_blocks(V100, 32) == 32
    assert occupancy.resident_blocks(V100, 33) == 32
    assert occupancy.resident_blocks(V100, 256, shared_bytes=48 * 1024) == 2
    assert occupancy.resident_blocks(V100, 256, registers=64) == 4
    assert occupancy.resident_blocks(V100, 1024, registers=64) == 1
    with pytest.raises(ValueError, match="1024 threads with 65 registers each.* 65536 registers"):
        occupancy.resident_blocks(V100, 1024, registers=65)
    with pytest.raises(ValueError, match="1025 threads.*1024"):
        occupancy.resident_blocks(V100, 1025)
    with pytest.raises(ValueError, match="200000 B.*98304 B"):
        occupancy.resident_blocks(V100, 32, shared_bytes=200_000)


@pytest.mark.parametrize(
    ("threads", "shared", "registers", "blocks"),
    [
        (256, 0, 64, 4),
        (256, 0, 65, 3),  # a warp has registers in units of 256: 65 a thread are 72
        (256, 0, 72, 3),
        (256, 0, 73, 3),  # 80 a thread; 25 warps fit into 65,536, and 24 into four quarters
        (256, 0, 96, 2),
        (96, 0, 168, 4),  # 12 warps fit, 3 in each quarter
        (96, 0, 169, 2),  # 8 warps fit
        (128, 32 * 1024, 32, 6),  # 228 KB for 33 KB each: 1 KB of a block is the system's
        (128, 37 * 1024, 32, 6),  # 38 KB each, exactly
        (128, 37 * 1024 + 1, 32, 5),
        (128, 227 * 1024, 255, 1),
    ],
)
def test_an_sm_hands_out_registers_and_shared_memory_in_units(threads, shared, registers, blocks):
    assert occupancy.resident_blocks(device("h200"), threads, shared, registers) == blocks


def test_waves():
    assert occupancy.waves(V100, 1, 1) == 1
    assert occupancy.waves(V100, 80, 1) == 1
    assert occupancy.waves(V100, 81, 1) == 2
    assert occupancy.waves(replace(V100, sms=8), 12, 1) == 2  # 8 SMs, 12 blocks, one at a time


def test_blocks_come_whole_so_that_one_more_than_the_sms_takes_as_long_as_twice_as_many():
    tile, sms = 16, device("h200").sms
    times = {
        blocks: predict(Gemm(tile * blocks, tile, 512), "h200", kernels.tiled).times
        for blocks in (sms, sms + 1, 2 * sms)
    }
    for resource in ("math", "l1"):
        assert times[sms + 1][resource] == pytest.approx(times[2 * sms][resource])
        assert times[sms + 1][resource] == pytest.approx(2 * times[sms][resource])


def test_too_few_blocks_are_a_lack_of_parallelism():
    sixteen = predict(Gemm(64, 64, 8192), "h200", kernels.naive)
    four = predict(Gemm(16, 64, 8192), "h200", kernels.naive)
    assert (sixteen.limiter, four.limiter) == ("latency", "latency")
    assert sixteen.seconds == pytest.approx(four.seconds)  # each SM has one block at most
    assert sixteen.times["l1"] == pytest.approx(4 * four.times["l1"])


def test_each_rung_is_predicted_faster_than_the_one_below():
    """At a size where latencies and edges do not count; the first four by more than a tenth."""
    rates = [predict(Gemm(8192, 8192, 8192), "h200", k).flops_per_second for k in kernels.LADDER]
    assert rates == pytest.approx(sorted(rates), rel=1e-3)
    assert all(b > 1.1 * a for a, b in pairwise(rates[:4]))


def test_what_limits_each_rung():
    """One wavefront a cycle feeds 4 warps' FMAs a cycle: an 8×8 thread tile just does.

    Loads of 128 bits take two wavefronts where lanes share words: those of A in *vectorised*, and
    all in *warp tiled* and *pipelined*; else four.
    """
    p = Gemm(8192, 8192, 8192)
    rungs = kernels.register_tiled, kernels.vectorised, kernels.warp_tiled, kernels.pipelined
    plain, wide, warp, ahead = (predict(p, "h200", k) for k in rungs)
    fmas = p.flops // 2 // 32
    loads = [x.counters["shared_load_wavefronts"] / fmas for x in (plain, wide, warp)]
    assert loads[:2] == [(8 + 8) / 64, (2 * 2 + 2 * 4) / 64]
    assert loads[2] == pytest.approx((4 * 2 + 2 * 2) / 128, rel=1e-3)
    assert [x.bottleneck for x in (plain, wide, warp)] == ["l1", "issue", "issue"]
    assert [x.limiter for x in (plain, wide, warp)] == ["shared memory", "issue", "issue"]
    assert ahead.bottleneck == "issue"
    assert ahead.times["math"] > 0.99 * p.flops / device("h200").peak["float32"]
    slots = [x.times["issue"] / x.times["math"] for x in (plain, wide, warp)]
    # A load moves 128 bits of a lane at most: 4 groups for 64 FMAs, 6 for 128, and the copies.
    assert slots == pytest.approx([68 / 64, 68 / 64, 134 / 128], rel=0.01)


def test_an_instruction_is_an_fma_of_a_warp_or_a_load_of_128_bits():
    """By hand: 2 blocks of 2 warps, 2 steps of 16: FMAs, words of both tiles, copies."""
    p, tiling = Gemm(16, 32, 32), Tiling.square(16)
    fmas = 16 * 32 * 32 // 32
    shared = 2 * 8 * 32 * 2 * 4 // 16  # 8 warps a block, 32 values of p, two words of 4 bytes
    copied = 2 * 8 * 2 * 2 * 4 // 16  # each warp, in each step, a word of A and one of B
    assert kernels.tiled.work(p, tiling).instructions == fmas + shared + copied
    assert kernels.naive.work(Gemm(16, 16, 8), Tiling(block=(16, 16, 1))).instructions == (
        8 * 8 + 8 * 8 * 2 * 4 // 16
    )


def test_slots_bound_the_time_where_a_device_says_how_many_it_has():
    p = Gemm(8192, 8192, 8192)
    times = predict(p, "h200", kernels.warp_tiled).times
    h200, work = device("h200"), kernels.warp_tiled.work(p, kernels.warp_tiled.default)
    blocks = 64 * 64
    uneven = -(-blocks // 132) * 132 / blocks
    assert times["issue"] == pytest.approx(work.instructions / (4 * 132 * h200.clock) * uneven)
    unknown = replace(h200, issue_per_cycle_per_sm=None)
    assert "issue" not in predict(p, unknown, kernels.warp_tiled).times


def test_copies_ahead_divide_the_round_trips_to_memory():
    """Tiles that come one by one are waited for; a ring of 3 has 2 under way."""
    p = Gemm(128, 128, 8192)
    chains = {}
    for stages in (2, 3, 5):
        tiling = Tiling(block=(128, 128, 16), warp=(64, 32), thread=(8, 8), stages=stages)
        chains[stages] = kernels.pipelined.work(p, tiling).chain
    assert chains == {2: (512, 8192), 3: (256, 8192), 5: (128, 8192)}


def test_tiles_that_are_not_copied_ahead_are_waited_for_one_by_one():
    p = Gemm(128, 128, 1001)
    for kernel in kernels.LADDER[2:6]:
        bk = kernel.default.block[2]
        steps = -(-1001 // bk)
        assert kernel.work(p, kernel.default).chain == (steps, steps * bk)
    assert kernels.naive.work(p, kernels.naive.default).chain == (1, 1001)


@pytest.mark.parametrize("kernel", kernels.LADDER, ids=lambda k: k.name)
def test_traffic_to_l2_reads_a_for_each_column_of_blocks_b_for_each_row_and_c(kernel):
    across, down = kernel.default.grid(Gemm(256, 512, 256))
    for beta, touched in ((0, 1), (0.5, 2)):
        work = kernel.work(Gemm(256, 512, 256, beta=beta), kernel.default)
        assert work.l2_bytes == 4 * 256 * (across * 256 + down * 512 + touched * 512)


def test_l1_serves_shared_memory_and_global_accesses():
    """Of tiles of 32×32, an access is one line of 128 bytes: one cycle, in shared memory too."""
    counted = kernels.tiled.work(Gemm(256, 512, 256, beta=0.5), Tiling.square(32))
    passes = ("shared_load_wavefronts", "shared_store_wavefronts")
    requests = ("global_load_requests", "global_store_requests")
    assert counted.l1_wavefronts == sum(counted.counters[name] for name in passes + requests)


@pytest.mark.parametrize("kernel", kernels.LADDER, ids=lambda k: k.name)
def test_arithmetic_is_that_of_whole_tiles_in_the_format_of_the_sum(kernel):
    bm, bn, bk = kernel.default.block
    steps = 65 if kernel in (kernels.naive, kernels.coalesced) else -(-65 // bk) * bk
    for accumulate in ("float32", "float64"):
        problem = Gemm(bm + 1, 1, 65, dtype="float16", accumulate=accumulate)
        work = kernel.work(problem, kernel.default)
        assert work.flops == {accumulate: 2 * 2 * bm * bn * steps}


def test_a_staged_launch_may_name_the_pipes_of_its_arithmetic():
    p, tiling = Gemm(16, 16, 16), Tiling.square(16)
    moved = Counter(l1_cycles=1, lane_bytes=16)
    work = traffic.staged(p, tiling, moved, [], Counter(), 0, 0, flops={"float16": 7, "tf32": 1})
    assert work.flops == {"float16": 7, "tf32": 1}
    assert work.instructions == 0  # of Tensor Cores nothing is counted

"""The answers of chapter 09, found another way: by the simulator's counts, and event by event."""

import numpy as np
from numpy import float32, uint64

from gemmlab import Gemm, Tiling, cuda, device, kernels, run, simulate
from gemmlab.course.ch09_software_pipelining import guesses as answers
from gemmlab.instructions import setmaxnreg_dec, setmaxnreg_inc
from tests.support.record_lines import lines, nanoseconds

GPU = device("h200")
HALF = {"dtype": "float16", "out_dtype": "float32"}


def counted(kernel, problem, tiling=None):
    return run(kernel, problem, backend="simulator", tiling=tiling).counters


def of_a_step():
    """Copy and product of a step of *mma_swizzled* [cycle], from what the simulator counts."""
    bm, bn, bk = kernels.mma_swizzled.default.block
    short, long = (counted(kernels.mma_swizzled, Gemm(bm, bn, k, **HALF)) for k in (bk, 2 * bk))
    each = {name: long[name] - short[name] for name in long}
    # A wavefront of L1 serves 128 bytes of 16-byte loads, rows of 64 bytes of A two at a time.
    load = 2 * bk * (bm + bn) / 128 + each["global_load_requests"]
    way = GPU.dram_latency * GPU.clock
    multiply = max(
        2 * bm * bn * bk / GPU.flop_per_cycle_per_sm["float16"],
        each["shared_load_wavefronts"],
    )
    return load, way, each["shared_store_wavefronts"], multiply


def ring(steps, stages, copy, multiply):
    """The time of a loop, and of its waits, as its kernels go: wait, ask for a tile, multiply."""
    arrives = dict.fromkeys(range(stages - 1), copy)
    now = waited = 0.0
    for step in range(steps):
        waited += max(0.0, arrives[step] - now)
        now = max(now, arrives[step])
        arrives[step + stages - 1] = now + copy
        now += multiply
    return now, waited


def test_blocks():
    """Blocks that take turns at the Tensor Cores: the first that never lets them wait."""
    *parts, multiply = of_a_step()

    def waits(blocks):
        free, now, waited = [0.0] * blocks, 0.0, 0.0
        for turn in range(50 * blocks):
            arrives = free[turn % blocks] + sum(parts)
            waited += max(0.0, arrives - now)
            now = max(now, arrives) + multiply
            free[turn % blocks] = now
        return waited > sum(parts)

    assert answers.blocks().number == next(b for b in range(1, 9) if not waits(b))


def test_barriers():
    two_pairs = Tiling(block=(64, 64, 16), warp=(32, 32), thread=(8, 4), stages=2)
    short, long = (
        counted(kernels.pipelined, Gemm(64, 64, k), two_pairs)["barriers"] for k in (32, 64)
    )
    assert answers.barriers().number == (long - short) / (32 / 16)


def test_three():
    *parts, multiply = of_a_step()
    short, long = (ring(steps, 3, sum(parts), multiply)[0] for steps in (101, 201))
    assert abs(answers.three().number / ((long - short) / 100) - 1) < 0.05


def test_short():
    *parts, multiply = of_a_step()
    whole, waited = ring(8, 4, sum(parts), multiply)
    assert abs(answers.short().number - 100 * waited / whole) < 1.5


def test_gain():
    before, after = (
        next(
            nanoseconds(line)
            for line in lines(name, 4096)
            if line["tiling"]["block"] == block and line["tiling"]["warp"] == [64, 32]
        )
        for name, block in (("warp_tiled", [128, 128, 16]), ("pipelined", [128, 128, 8]))
    )
    assert answers.gain().number == round(100 * (before / after - 1))


def test_room():
    def deep(stages):
        tile = Tiling(kernels.warp_specialised.default.block, stages=stages)
        return kernels.warp_specialised.shared_bytes(Gemm(128, 256, 64, **HALF), tile)

    fits = [s for s in range(2, 9) if deep(s) <= GPU.shared_bytes_per_block]
    assert answers.room().number == max(fits)


def test_copies():
    problem = Gemm(128, 256, 64, layout="nt", **HALF)
    operands = problem.operands()
    k, tiling = kernels.warp_specialised, kernels.warp_specialised.default
    c = np.full((128, 256), np.nan, float32)
    grid, block = k.launch(problem, tiling, GPU)
    report = simulate(
        k.function(problem, tiling), grid, block, float32(1),
        *k.operands(problem, tiling, *operands[:2]), float32(0), c,
        shared_bytes=k.shared_bytes(problem, tiling),
    )  # fmt: skip
    assert answers.copies().number == report.instructions["inst_tensor_copy"]


def test_registers():
    def dealt(consumers):
        def kernel(out):
            if cuda.threadIdx.x >= 256:
                setmaxnreg_dec(56)
            else:
                setmaxnreg_inc(consumers)
            out[cuda.threadIdx.x] = uint64(1)

        report = simulate(kernel, 1, 384, np.zeros(384, uint64), on_hazard="collect")
        return not report.hazards

    assert answers.registers().number == max(r for r in range(168, 256, 8) if dealt(r))


def test_multicast():
    """The bytes of one pair of tiles and one step, counted: tiles of half the size, as alike."""
    pair, half = Gemm(256, 128, 64, layout="nt", **HALF), Tiling((128, 128, 64), stages=2)
    asked = [counted(k, pair, half)["tensor_copy_bytes"]
             for k in (kernels.tma_stored, kernels.tma_multicast)]  # fmt: skip
    of_a, of_b = 2 * 128 * 64 * 2, 128 * 64 * 2
    assert asked == [of_a + 2 * of_b, of_a + of_b]
    # The tile of the chapter has twice as much of B.
    assert answers.multicast().number == 100 * (1 - (of_a + 2 * of_b) / (of_a + 4 * of_b))

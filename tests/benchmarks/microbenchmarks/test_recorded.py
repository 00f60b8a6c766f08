"""What is recorded of an H200: whole, of the kernels that are here, plausible; facts made of it."""

import re
from itertools import product

import numpy as np
import pytest

from benchmarks.microbenchmarks import (
    LAUNCHES,
    LOOPS,
    beside_products,
    beside_wgmma,
    cold,
    microbenchmark,
    running,
    together,
)
from benchmarks.microbenchmarks.asynchronous import TILE
from benchmarks.microbenchmarks.launch import COUNT
from benchmarks.microbenchmarks.loop import sha256
from gemmlab import device
from gemmlab.compiled.sass.compiling import machine_code
from gemmlab.compiled.sm.facts import facts
from gemmlab.device import sources
from gemmlab.here.driver import tool_version
from gemmlab.measure import microbenchmarks as results
from gemmlab.measure.microbenchmarks import DIGITS
from tests.support.paths import ROOT
from tests.support.timed_code import assembled

H200, H100 = map(results.load, ("h200", "h100_sxm"))
GPU = device("h200")
RECORDED = ("h200", "h100_sxm")
TARGET = "sm_90"
EVERY = {one.name: one for one in (*LOOPS, *LAUNCHES)}


def cycles(name, warps=1):
    return H200.loop(name, warps).each


def test_every_microbenchmark_is_recorded_once():
    """Those of decisions 017 to 020 are younger than the others, and in files of their own.

    Of those of `together` an H100's times are there alone.
    """
    younger = (*beside_products.LOOPS, *beside_wgmma.LOOPS)
    older = [loop for loop in LOOPS if loop not in (*younger, *together.LOOPS)]
    found = [(row.name, row.warps) for row in H200.loops]
    assert found == [(loop.name, warps) for loop in (*older, *younger) for warps in loop.warps]
    found = [(row.name, row.blocks) for row in H200.launches]
    assert found == [
        (one.name, blocks * (GPU.sms if one.per_sm else 1))
        for one in LAUNCHES
        for blocks in one.blocks
    ]


OF_TOGETHER = [row for row in H100.loops if EVERY[row.name] in together.LOOPS]


def test_what_sms_do_together_is_recorded_of_an_h100():
    assert [row.name for row in OF_TOGETHER] == [loop.name for loop in together.LOOPS]
    assert {row.blocks for row in OF_TOGETHER} == {33, 66, 99, 132}


def what_is_here(row):
    """Of the microbenchmark that a row names: its code, and what it says that it does."""
    one = EVERY[row.name]
    code = sha256(one.ptx(TARGET))[:DIGITS]
    if isinstance(row, results.LoopTiming):
        return code, running.SAMPLES, one.count * one.turns
    return code, running.SAMPLES, one.bytes, one.in_a_row


def what_was_timed(row):
    if isinstance(row, results.LoopTiming):
        return row.ptx_sha256, len(row.ns), row.instructions
    return row.ptx_sha256, len(row.ns), row.bytes, row.launches


def test_what_was_timed_is_what_is_here():
    rows = [*H200.loops, *H200.launches, *OF_TOGETHER]
    assert [r.name for r in rows if what_was_timed(r) != what_is_here(r)] == []


SOME = ("ffma_imad_rate", "lds_128_own_rate", "ldg_l1_128_own_rate", "hmma_16816_f16_latency")


@pytest.mark.ptxas
@pytest.mark.parametrize("name", SOME)
def test_the_code_that_ran_is_what_ptxas_makes_here(name):
    said = H200.provenance["ptxas"]
    if tool_version("ptxas") != said:
        pytest.skip(f"the record is of ptxas {said}, here is {tool_version('ptxas')}")
    cubin, _ = assembled(microbenchmark(name).ptx(TARGET), TARGET)
    rows = [row for row in H200.loops if row.name == name]
    assert {row.code_sha256 for row in rows} == {sha256(machine_code(cubin))[:DIGITS]}


def test_launches_repeat_each_other():
    """Nine of ten loops differ by less than 2% from one launch to another."""
    spreads = sorted(
        max(row.cycles)[0] / min(row.cycles)[0]
        for row in H200.loops
        if EVERY[row.name].observe.__name__ == "span"
    )
    assert spreads[len(spreads) * 9 // 10] < 1.02


# -------------------------------------------------------------------------------- what it must say


def test_an_ffma_takes_as_long_as_the_manual_says():
    assert cycles("ffma_latency") == pytest.approx(GPU.fma_latency_cycles, rel=0.05)


@pytest.mark.parametrize(("name", "dtype"), [("ffma_rate", "float32"), ("dadd_rate", "float64")])
def test_rates_are_those_of_the_manual(name, dtype):
    """Of 32 warps, 32 lanes each; a multiplication and an addition are 2 FLOP."""
    per_cycle = 2 * GPU.warp_size * 32 / cycles(name, 32)
    assert per_cycle == pytest.approx(GPU.flop_per_cycle_per_sm[dtype], rel=0.05)


@pytest.mark.parametrize("name", ["hmma_16816_f16_rate_4_chains", "hmma_16816_bf16_rate_4_chains"])
def test_mma_sync_reaches_two_thirds_of_the_tensor_cores(name):
    """The rest needs wgmma."""
    per_cycle = 2 * 16 * 8 * 16 * 32 / cycles(name, 32)
    assert per_cycle == pytest.approx(GPU.flop_per_cycle_per_sm["float16"] * 2 / 3, rel=0.05)


@pytest.mark.parametrize(("groups", "warps"), [*product((2, 4, 8, 16, 32), (16, 32))])
def test_a_load_that_hits_l1_takes_a_cycle_for_each_line(groups, warps):
    name = f"ldg_l1_32_lines_{groups}_rate"
    assert cycles(name, warps) == pytest.approx(groups * warps, rel=0.05)


@pytest.mark.parametrize("ways", [2, 4, 32])
def test_bank_conflicts_take_a_cycle_each(ways):
    assert cycles(f"lds_32_conflict_{ways}_rate", 32) == pytest.approx(ways * 32, rel=0.05)


def test_memories_are_farther_away_one_by_one():
    levels = ("lds_32_latency", "ldg_l1_latency", "ldg_l2_latency", "ldg_dram_latency")
    latencies = list(map(cycles, levels))
    assert latencies == sorted(latencies)


def test_the_clock_is_the_one_that_the_peak_needs():
    assert H200.loop("ffma_all_sms", 16).clock_hz == pytest.approx(GPU.clock, rel=0.01)
    assert 0.8 * GPU.clock < H200.loop("hmma_all_sms", 16).clock_hz < GPU.clock


# -------------------------------------------------------------------------- facts of devices/*.toml


@pytest.mark.parametrize("name", RECORDED)
def test_blocks_are_as_far_apart_as_recorded(name):
    """Of the first ends on all SMs, in the median of the launches."""
    recorded, gpu = results.load(name), device(name)
    ends = np.array(recorded.loop("blocks_that_load", 8).cycles)[:, gpu.sms :]
    spread = np.median(ends.std(axis=1) / ends.mean(axis=1))
    fact = sources(gpu)["block_spread"].text
    assert gpu.block_spread == float(f"{spread:.3g}")
    assert "`blocks_that_load`" in fact
    assert recorded.provenance["date"][:10] in fact


def hand_out_interval(recorded, gpu):
    """The cost of each further block, where many come for each SM."""
    few, many = (recorded.launch("empty_256_threads_4_bytes", n * gpu.sms) for n in (16, 32))
    return (many.seconds - few.seconds) / (many.blocks - few.blocks)


WORD = 4  # B, one of each sector
FACTS = {
    "dram_read_bandwidth": ("dram_read_128", lambda one: one.bytes_per_second),
    "dram_copy_bandwidth": ("dram_copy_128", lambda one: one.bytes_per_second),
    "dram_write_bandwidth": ("dram_write_128", lambda one: one.bytes_per_second),
    "l2_write_bandwidth": ("l2_write_32", lambda one: one.bytes_per_second),
    "l2_partial_writes": ("dram_write_stride_8", lambda one: one.bytes_per_second / WORD),
    "l2_additions": ("red_f32_own", lambda one: COUNT / one.seconds),
    "launch_latency": ("empty_alone", lambda one: one.seconds),
    "launch_interval": ("empty_256_threads_4_bytes", lambda one: one.seconds),
}


@pytest.mark.parametrize("name", RECORDED)
def test_the_tma_gets_more_from_l2_than_threads_do(name):
    """By the clock of the SM that takes longest, with all SMs at it."""
    recorded, gpu = results.load(name), device(name)
    one, fact = recorded.loop("tma_60_copies_all_sms", 1), sources(gpu)["l2_tma_bandwidth"].text
    rate = 60 * TILE / one.each * gpu.sms * gpu.clock
    assert gpu.l2_tma_bandwidth == float(f"{rate:.3g}") > gpu.l2_bandwidth
    assert f"{60 * TILE / one.each:.1f} bytes" in fact
    assert f"`{one.name}`" in fact
    assert recorded.provenance["date"][:10] in fact


@pytest.mark.parametrize(("of", "fact"), [("hmma", "tensor_clocks"), ("wgmma", "wgmma_clocks")])
def test_clocks_are_those_of_loops_that_multiply_tiles(of, fact):
    """The medians of launches, by quarters of the SMs; on an H200 the last is an H100's."""
    rows = [row for row in OF_TOGETHER if row.name.startswith(of)]
    clocks = [float(np.median([launch[1] for launch in row.cycles])) for row in rows]
    assert getattr(facts("h100_sxm"), fact) == tuple(1e6 * c for c in clocks)
    said = facts("h100_sxm").sources[fact]
    assert ", ".join(f"{c:.0f}" for c in clocks[:3]) + f" and {clocks[3]:.0f} MHz" in said
    assert getattr(facts("h200"), fact)[-1] == getattr(facts("h100_sxm"), fact)[-1]
    assert f"{clocks[3]:.0f} MHz" in facts("h200").sources[fact]


@pytest.mark.parametrize(
    ("of", "fact", "busy"), [("hmma", "tensor_use", 2 * 6), ("wgmma", "wgmma_use", 2 * 128)]
)
def test_so_busy_were_tensor_cores_then(of, fact, busy):
    one = H100.loop(f"{of}_together_on_all_sms", 8)
    assert getattr(facts("h100_sxm"), fact) == round(busy / one.each, 2)
    assert f"{one.each:.2f} cycles" in facts("h100_sxm").sources[fact]


def test_neighbours_that_want_the_same_get_more_from_l2():
    """Nearly twice as much as where each wants something else; few SMs get about as much."""
    pairs, alone, few = (
        60 * TILE / H100.loop(name, 1).each
        for name in ("tma_together_by_2", "tma_60_copies_all_sms", "tma_together_on_quarter_of_sms")
    )
    known = facts("h100_sxm")
    assert known.l2_bytes_at_most == float(f"{pairs:.3g}") == facts("h200").l2_bytes_at_most
    assert 1.6 * alone < pairs < 2 * alone
    assert pairs == pytest.approx(few, rel=0.2)
    for rate in (pairs, few):
        assert f"{rate:.1f}" in known.sources["l2_bytes_at_most"]


def test_the_decision_tells_what_sms_have_together():
    text = (ROOT / "book/decisions/020-what-sms-have-together.md").read_text("utf-8")
    copies = re.findall(r"\(`(tma_\w+)`\) \| ([\d.]+) \|", text)
    assert len(copies) == 4
    for name, told in copies:
        rate = 60 * TILE / H100.loop(name, 1).each
        assert float(told) == pytest.approx(rate, abs=0.051)
    for of in ("hmma", "wgmma"):
        (told,) = re.findall(rf"\(`{of}_together_on_…`\) \|([\d| ]+)\|", text)
        rows = [row for row in OF_TOGETHER if row.name.startswith(of)]
        clocks = [np.median([launch[1] for launch in row.cycles]) for row in rows]
        assert list(map(int, told.split("|"))) == clocks


@pytest.mark.parametrize("name", RECORDED)
def test_device_memory_gives_an_sm_less_when_l2_is_full_of_other_lines(name):
    """Tiles that two blocks ask for, six more of each block; as a stream they would come faster."""
    recorded, gpu = results.load(name), device(name)
    few, many = (recorded.launch(f"ring_of_{n}_tiles_by_2_cold").seconds for n in cold.TILES)
    more = cold.PER_SM * (cold.TILES[1] - cold.TILES[0]) * cold.TILE // 2
    share = more / (many - few) / gpu.clock
    assert facts(name).dram_bytes_per_cycle == float(f"{share:.2g}")
    source = facts(name).sources["dram_bytes_per_cycle"]
    assert f"{(many - few) * 1e6:.2f} microseconds for {more:,} bytes" in source
    assert share < gpu.dram_read_bandwidth / gpu.sms / gpu.clock


@pytest.mark.parametrize("name_of_gpu", RECORDED)
@pytest.mark.parametrize("fact", [*FACTS, "hand_out_interval"])
def test_facts_are_made_of_what_is_recorded(fact, name_of_gpu):
    recorded, gpu = results.load(name_of_gpu), device(name_of_gpu)
    name, of = FACTS.get(fact, ("empty_256_threads_4_bytes", None))
    if of:
        blocks = gpu.sms if microbenchmark(name).per_sm else microbenchmark(name).blocks[0]
        expected = of(recorded.launch(name, blocks))
    else:
        expected = hand_out_interval(recorded, gpu)
    assert getattr(gpu, fact) == float(f"{expected:.3g}")
    assert f"`{name}`" in sources(gpu)[fact].text
    assert recorded.provenance["date"][:10] in sources(gpu)[fact].text

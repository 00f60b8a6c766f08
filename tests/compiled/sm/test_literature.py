"""GPUs whose facts are from the literature: they say so, and differ where their pipes do."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from gemmlab import device
from gemmlab.compiled.sass.listing import Instruction
from gemmlab.compiled.sm.facts import UNITS, facts, known
from gemmlab.compiled.sm.pipes import Pipe, use
from gemmlab.compiled.sm.program import _slots
from gemmlab.device import FOLDER, of_capability
from gemmlab.model.occupancy import resident_blocks

MEASURED = "h200", "h100_sxm"
READ = tuple(name for name in known() if name not in MEASURED)


def used(opcode, name):
    return use(Instruction(0, "", opcode, ()), facts(name))


def test_only_what_was_measured_here_says_so():
    assert {name for name in known() if facts(name).measured} == {*MEASURED}
    assert {"t4", "a100_40gb", "rtx3060", "rtx3090", "rtx_a6000", "rtx4090", "rtx5090"} <= {*READ}


@pytest.mark.parametrize("name", READ)
def test_what_is_read_names_no_microbenchmark_of_here(name):
    """Every fact that a file says itself has a source that somebody else published."""
    text = Path(FOLDER, f"{name}.toml").read_text("utf-8").partition("[sm]")[2]
    assert text.count("source = ") > 2
    assert not re.search(r"Microbenchmarks? ", text)
    assert set(facts(name).sources) == set(UNITS)


@pytest.mark.parametrize("name", READ)
def test_ffmas_are_issued_as_fast_as_the_peak_says(name):
    known_of, target = facts(name), device(name)
    per_cycle = 4 * 32 * known_of.fma_pipes / known_of.fma_interval
    assert per_cycle == target.flop_per_cycle_per_sm["float32"] / 2
    assert per_cycle == of_capability(target.compute_capability).fma_per_cycle["float32"]


@pytest.mark.parametrize("name", READ)
def test_tensor_cores_multiply_as_fast_as_the_peak_says(name):
    """16x8x8 products: 1024 FMAs in each of the four Tensor Cores of an SM."""
    per_cycle = 4 * 1024 / facts(name).tensor_short_interval
    assert per_cycle == device(name).flop_per_cycle_per_sm["float16"] / 2


def test_pipes_are_those_of_the_generation():
    assert used("FFMA", "t4").pipe == used("IMAD", "t4").pipe == Pipe.FMA_HEAVY
    assert used("FFMA", "a100_80gb").other == Pipe.NONE
    assert used("FFMA", "rtx3090").other == Pipe.FMA_HEAVY
    assert used("IMAD", "rtx3090").other == Pipe.NONE
    assert used("IMAD", "rtx5090").other == Pipe.FMA_HEAVY
    halves = [used(f"HMMA.16816.{sums}", "rtx3090").interval for sums in ("F16", "F32")]
    assert halves == [16, 32]
    assert used("HMMA.1688.F16", "rtx3090").interval == 8
    product = Instruction(0, "", "HMMA.16816.F32", ())
    assert _slots(product, used(product.opcode, "rtx3090"), facts("rtx3090")) == 3


def test_an_sm_holds_what_its_capability_says():
    sizes = {name: resident_blocks(device(name), 64) for name in ("t4", "rtx3090", "rtx4090")}
    assert sizes == {"t4": 16, "rtx3090": 16, "rtx4090": 24}
    assert resident_blocks(device("rtx3090"), 256) == 6  # 1536 threads
    assert resident_blocks(device("a100_80gb"), 128, shared_bytes=40 * 1024) == 4  # 164 KB
    assert resident_blocks(device("t4"), 128, shared_bytes=32 * 1024) == 2  # 64 KB


def test_a_recorded_outcome_is_not_another_gpus():
    h200 = facts("h200")
    assert h200.others == facts("h100_sxm").others == ()
    assert ("fma_pipes", 1) in facts("t4").others
    assert replace(h200, wavefront_interval=2).others == (("wavefront_interval", 2),)

"""Accesses ask of L2 and device memory: recently used lines, lanes that go anywhere, stores."""

from dataclasses import replace

import numpy as np
import pytest

from gemmlab import device
from gemmlab.compiled.forecast.traffic import (
    L1,
    Recent,
    is_scattered,
    lacking,
    lines_of,
    never_filled,
    scattered,
    streams,
    weights,
)
from gemmlab.compiled.sass.execution.machine import Visit
from gemmlab.compiled.sass.execution.memory import SEGMENT, Cost
from gemmlab.compiled.sm.streams import Level
from gemmlab.measure import store
from tests.support.listings import listing

H100 = device("h100_sxm")
MEASURED = {
    row["name"]: row
    for row in store.read(store.ROOT / H100.name / "memory.json", {"rows": dict}).tables["rows"]
}
ARRAY = 1 << SEGMENT >> 5  # the first sector of the first array
ANYWHERE = np.sort(np.random.default_rng(1).integers(0, 1 << 24, 32))[None] + ARRAY
LOAD = listing("------ W0 R- - S01  LDG.E R4, desc[UR4][R2.64]")
STORE = listing("------ W- R- - S01  STG.E desc[UR4][R2.64], R4")


@pytest.mark.parametrize(
    ("fact", "row"),
    [
        ("l2_partial_lines", "store_line_16MB"), ("l2_requests", "load_16MB"),
        ("l2_scattered_additions", "add_16MB"), ("l2_scattered_atomics", "return_16MB"),
        ("dram_scattered_reads", "load_8GB"), ("dram_scattered_writes", "store_sector_8GB"),
    ],
)  # fmt: skip
def test_a_rate_is_that_of_the_row_that_its_source_names(fact, row):
    assert getattr(H100, fact) == pytest.approx(MEASURED[row]["rate"], rel=0.01)
    assert f"`{row}`" in H100.sources[fact].text


def access(op, pieces, partial=None):
    sectors = np.array([len(np.unique(row[row >= 0])) for row in pieces])
    warps = np.arange(len(pieces))
    return Cost("global", op, warps, sectors // 4 + 1, sectors, pieces, partial)


def visit_of(*costs):
    made = Visit(0, np.arange(len(costs[0].warps)), 1)
    made.costs.extend((0, cost) for cost in costs)
    return made


def test_lanes_follow_a_pattern_or_go_anywhere():
    row = np.arange(32)
    patterns = [row, 8 * row, row // 16 * 512 + row % 16, row // 8 * 512, np.full(32, 7)]
    assert not is_scattered(np.stack([np.sort(p) for p in patterns])).any()
    assert is_scattered(ANYWHERE).all()
    assert lines_of(np.stack([row, 4 * row])).tolist() == [8, 32]


def test_of_what_lies_anywhere_l2_holds_what_comes_again_before_it_goes():
    """Rates of loads follow that were measured."""
    for name in ("32MB", "64MB", "128MB", "512MB", "8GB"):
        measured = MEASURED[f"load_{name}"]["rate"]
        size = int(name[:-2]) << (30 if "G" in name else 20)
        part = lacking(size, 1 << 30, H100.l2_bytes / 2, H100, cold=False)
        assert H100.dram_scattered_reads / part == pytest.approx(measured, rel=0.09), name
    first = lacking(8 << 20, 1000, H100.l2_bytes / 2, H100, cold=True)
    assert first == pytest.approx(1, abs=0.01)  # each comes for the first time
    assert lacking(8 << 20, 1 << 40, H100.l2_bytes / 2, H100, cold=True) < 1e-3


def test_of_what_lanes_add_to_l2_holds_what_one_microbenchmark_says():
    """Its size is the one that the fact was read off; others follow within a tenth."""
    whole = MEASURED["add_8GB"]["rate"]
    for log, within in ((26, 0.01), (27, 0.07), (28, 0.07), (30, 0.07)):
        size = f"{2**log >> 20}MB" if log < 30 else f"{2**log >> 30}GB"
        part = lacking(1 << log, 1 << 40, H100.l2_added_bytes, H100, cold=False)
        assert whole / part == pytest.approx(MEASURED[f"add_{size}"]["rate"], rel=within), size
    lacks = scattered([visit_of(access("atomic", ANYWHERE))], {1: 1 << 26}, 1e6, H100, cold=False)
    loads = scattered([visit_of(access("load", ANYWHERE))], {1: 1 << 26}, 1e6, H100, cold=False)
    assert lacks.additions[1] < loads.loads[1]
    assert not lacks.stores
    unknown = replace(H100, l2_added_bytes=None)
    alike = scattered([visit_of(access("atomic", ANYWHERE))], {1: 1 << 26}, 1e6, unknown, False)
    assert alike.additions[1] == pytest.approx(loads.loads[1])


def test_a_loop_of_the_tma_is_as_fast_wherever_rows_begin_and_l2_keeps_most_of_itself():
    rows = store.read(store.ROOT / H100.name / "rows.json", {"rows": dict}).tables["rows"]
    boxes = [row["rate"] for row in rows if row["name"].startswith("tma_")]
    assert len(boxes) == 9
    assert max(boxes) < 1.01 * min(boxes)
    again = {int(r["name"][6:]): r["rate"] for r in rows if r["name"].startswith("again_")}
    held = max(size for size, rate in again.items() if rate > 0.9 * max(again.values()))
    gone = min(size for size, rate in again.items() if rate < 1.05 * again[128])
    assert 0.8 < (held << 20) / H100.l2_bytes < (gone << 20) / H100.l2_bytes < 1.15


def test_an_access_anywhere_takes_device_memory_as_long_as_two_sectors_and_a_row():
    visit, levels = visit_of(access("load", ANYWHERE)), np.array([int(Level.DRAM)])
    lacks = scattered([visit], {1: 1 << 29}, 1e6, H100, cold=True)
    assert lacks.at == {0}
    assert lacks.arrays == {1}
    (one,) = streams([visit], LOAD, levels, L1(4096), weights(H100), lacks=lacks)
    each = H100.dram_copy_bandwidth / 32 / H100.dram_scattered_reads
    assert one.moved[0] == pytest.approx(32 * each * lacks.loads[1], abs=1)
    assert one.sectors[0] == pytest.approx(32 * H100.l2_bandwidth / 32 / H100.l2_requests, abs=1)
    unknown = replace(H100, l2_requests=None, dram_scattered_reads=None)
    (plain,) = streams([visit], LOAD, levels, L1(4096), weights(unknown), lacks=lacks)
    assert plain.sectors[0] == 32 > plain.moved[0]


def test_l2_has_what_was_asked_for_lately():
    recent = Recent(4 * 32)
    assert not recent.has([1, 2])
    assert recent.has([1, 2])
    assert not recent.has([3, 4, 5, 6, 7])
    assert not recent.has([1])
    row = np.sort(np.arange(32) // 8)[None] + ARRAY
    other = row + 4 * 128  # takes its place in an L1 of one line
    turns = [visit_of(access("load", pieces)) for pieces in (row, other, row)]
    (one,) = streams(turns, LOAD, np.array([int(Level.DRAM)]), L1(128), recent=Recent(1 << 20))
    assert one.levels.tolist() == [Level.DRAM, Level.DRAM, Level.L2]
    (one,) = streams(turns, LOAD, np.array([int(Level.DRAM)]), L1(128), recent=Recent(0))
    assert one.levels.tolist() == [Level.DRAM] * 3


def test_a_sector_that_several_warps_fill_is_not_read_first():
    row = np.arange(32)
    column = np.stack([4 * row, 4 * row]) + ARRAY  # two warps store words of the same sectors
    part = np.full(2, 32)
    assert never_filled([visit_of(access("store", column, part))]) == {0: 0.0}
    apart = np.stack([4 * row, 4 * (row + 32)]) + ARRAY
    assert never_filled([visit_of(access("store", apart, part))]) == {0: 1.0}
    levels = np.full(2, int(Level.DRAM))
    filled, alone = (
        streams([visit_of(access("store", p, part))], STORE, levels, L1(128), weights(H100))[0]
        for p in (column, apart)
    )
    assert filled.sectors[0] == alone.sectors[0]
    assert alone.moved[0] > 1.9 * filled.moved[0]

"""Accesses of 8 and 16 bytes a lane: the simulator's counters beside those of an H200.

Recorded by benchmarks/hardware_wide.py: one access of one warp a record.
"""

import json

import numpy as np
import pytest

from benchmarks.hardware_wide import KERNELS, Case, simulated
from tests.support.paths import DATA

RECORDS = [json.loads(line) for line in (DATA / "h200_wide.jsonl").read_text("utf-8").splitlines()]
COPIES = ("copy_4", "copy_16", "scatter_16")
COMPARED = ("shared_load_wavefronts", "shared_store_wavefronts", "global_load_sectors")


def each(records: list[dict]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("record", records, ids=lambda r: f"{r['kernel']} {r['pattern']}")


def counted(record: dict) -> dict[str, int]:
    case = Case(record["kernel"], record["pattern"], np.array(record["rows"], np.int32))
    found = simulated(case)
    return {name: found.get(name, 0) for name in COMPARED}


def test_there_are_records_of_every_kernel():
    assert {r["kernel"] for r in RECORDS} == set(KERNELS)
    assert len(RECORDS) >= 200


@each([r for r in RECORDS if r["kernel"] not in COPIES])
def test_counts_are_those_of_the_hardware(record):
    measured, model = record["measured"], counted(record)
    for name in COMPARED:
        assert measured[name] == model[name]


@each([r for r in RECORDS if r["kernel"] in COPIES])
def test_copies_are_counted_by_a_rule_of_their_own(record):
    rows, lane = np.array(record["rows"]), np.arange(32)
    source, to = (lane, rows) if record["kernel"] == "scatter_16" else (rows, lane)
    on, size = rows >= 0, 16
    measured, model = record["measured"], counted(record)
    of_at = 4  # sectors of the load of `at`
    sectors = len(set(source[on] * size // 32))
    assert model["global_load_sectors"] == sectors + of_at
    if record["kernel"] != "copy_4":
        pairs = zip(source[on] * size // 128, to[on] * size // 32, strict=True)
        sectors = len(set(pairs))
    assert measured["global_load_sectors"] == sectors + of_at
    assert measured["shared_store_wavefronts"] == 0 < model["shared_store_wavefronts"]
    assert measured["async_requests"] == 1

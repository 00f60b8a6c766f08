"""Counts by name: 0 for what did not occur, an error for what is no counter, everywhere."""

import pickle

import numpy as np
import pytest

from gemmlab import Gemm, cuda, instructions, kernels, predict, run, simulate
from gemmlab.instructions.instruction import Instruction
from gemmlab.measure.measurement import Measurement
from gemmlab.model.counters import (
    INSTRUCTIONS,
    TRANSACTIONS,
    Counters,
    InstructionCounters,
    TransactionCounters,
)

SMALL = Gemm(8, 8, 8)


def copy(x, y):
    i = cuda.grid(1)
    y[i] = x[i]


def report():
    return simulate(copy, 1, 32, np.ones(32, np.float32), np.zeros(32, np.float32))


COUNTED = {
    "a report": lambda: report().counters,
    "a line": lambda: report().by_line[copy.__code__.co_firstlineno + 2],
    "a prediction": lambda: predict(SMALL, "h200", kernel=kernels.naive).counters,
    "an ideal prediction": lambda: predict(SMALL, "h200").counters,
    "a simulated run": lambda: run(kernels.naive, SMALL, backend="simulator").counters,
    "a timed run": lambda: Measurement("k", SMALL, None, "cpu", "x", "X", 0.0, 1.0).counters,
    "by hand": lambda: (
        Measurement("k", SMALL, None, "cpu", "x", "X", 0.0, 1.0, counters={"barriers": 2}).counters
    ),
}


@pytest.mark.parametrize("whose", COUNTED)
def test_a_counter_that_did_not_occur_is_0(whose):
    counters = COUNTED[whose]()
    assert counters["shared_bank_conflicts"] == counters["dram_read_bytes"] == 0
    with pytest.raises(KeyError, match="'bank_conflicts' is no counter; use one of global_load"):
        counters["bank_conflicts"]
    assert counters.get("bank_conflicts") is None


def test_instructions_and_transactions_are_not_mixed_up():
    launch = report()
    assert launch.instructions["inst_mma"] == 0
    with pytest.raises(KeyError, match="'inst_mma' is no counter"):
        launch.counters["inst_mma"]
    with pytest.raises(KeyError, match="'barriers' is no counter; use one of inst_executed"):
        launch.instructions["barriers"]


def test_what_is_counted_has_a_name():
    launch = report()
    assert set(launch.counters) <= set(TRANSACTIONS)
    assert set(launch.instructions) <= set(INSTRUCTIONS)
    declared = [getattr(instructions, name) for name in instructions.__all__]
    kinds = {d.kind for d in declared if isinstance(d, Instruction)} - {"load", "store"}
    assert {f"inst_{kind}" for kind in kinds} <= set(INSTRUCTIONS)


@pytest.mark.parametrize("kind", [Counters, TransactionCounters, InstructionCounters])
def test_counters_are_mappings(kind):
    name = next(iter(kind.names))
    counted = kind({name: 3})
    assert counted == {name: 3}
    assert counted == pickle.loads(pickle.dumps(counted))
    assert type(pickle.loads(pickle.dumps(counted))) is kind
    assert dict(counted) == {name: 3}

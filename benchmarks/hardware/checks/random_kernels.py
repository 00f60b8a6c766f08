"""A fixed set of random kernels on the GPU, on the simulator and in plain Python.

Integers must be equal, and floats equal to the simulator's, which contracts a·b + c as the compiler
does. Two right machines, one of which contracts, differ at most by twice the bound of the rounding
error that `one_by_one` carries along. What is recorded of a kernel is all that is needed to run it
again: its source, its launch, its arguments, and what the GPU made of them.
"""

import random
import re
from collections.abc import Mapping
from functools import cache

import numpy as np

from benchmarks.hardware import machine
from benchmarks.hardware.agreement.grammar import PARAMETERS, Case, generate
from benchmarks.hardware.agreement.one_by_one import one_by_one
from benchmarks.hardware.check import Check, Comparison, Measured
from gemmlab import simulate
from gemmlab.device import Device

SEED = 20
WHOLE, ROUNDED = 28, 14  # cases in which nothing rounds, and cases with arbitrary floats
RESULTS = ("out", "fout")
GLOBAL = "numba-cuda-mlir: an atomic of a shared array at `a if c else b` goes to global memory"
FAULTS = {
    "2": GLOBAL,
    "7": "numba-cuda-mlir knows no min of two sizes of arrays",
    "12": GLOBAL,
    "37": GLOBAL,
}

# The compiler folds such a product and rounds it; the simulator may contract it with what follows.
CONSTANT = r"\(?float32\(-?[0-9.]+\)\)?"
PRODUCT_OF_CONSTANTS = re.compile(rf"{CONSTANT} \* {CONSTANT}")


@cache
def cases() -> tuple[Case, ...]:
    """The set: first those whose every result is exact, then those that round."""
    kinds = [True] * WHOLE + [False] * ROUNDED
    return tuple(generate(random.Random(SEED + i), whole=w, most=96) for i, w in enumerate(kinds))


def pieces(device: Device) -> Mapping[str, str]:
    return machine.left_out(map(str, range(WHOLE + ROUNDED)), FAULTS)


def measure(piece: str, device: Device) -> Measured:
    case = cases()[int(piece)]
    after = machine.launch(case.function(), case.grid, case.block, case.fresh())
    results = dict(zip(PARAMETERS, after, strict=True))
    return {
        **{"source": case.source, "grid": list(case.grid), "block": list(case.block)},
        **{name: np.asarray(case.arguments[name]) for name in PARAMETERS},
        **{f"{name}.after": results[name] for name in RESULTS},
    }


def case_of(measured: Measured) -> Case:
    """The case that was measured."""
    arguments = {name: measured[name] for name in PARAMETERS}
    arguments |= {"k": int(arguments["k"]), "alpha": arguments["alpha"][()]}
    return Case(measured["source"], tuple(measured["grid"]), tuple(measured["block"]), arguments)


def simulated(case: Case, contract: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """(out, fout) of a case on the simulator, which must find no hazard in it."""
    arguments = case.fresh()
    simulate(case.function(), case.grid, case.block, *arguments, contract=contract)
    return arguments[-2], arguments[-1]


def compare(piece: str, measured: Measured, device: Device) -> Comparison:
    case = case_of(measured)
    found = Comparison()
    out, fout = (measured[f"{name}.after"] for name in RESULTS)
    here, contracted = simulated(case)
    there, plain, bound = one_by_one(case)
    found.equal("out, simulated", out, here)
    found.equal("out, one by one", out, there)
    for name, other in (("fout, simulated", contracted), ("fout, one by one", plain)):
        found.elements(name, apart(fout, other, bound), fout, other)
    found.holds(
        np.array_equal(fout, contracted, equal_nan=True)
        or PRODUCT_OF_CONSTANTS.search(case.source),
        f"fout is rounded as by no compiler that contracts:\n{case.source}",
    )
    return found


def apart(one: np.ndarray, other: np.ndarray, bound: np.ndarray) -> np.ndarray:
    """Where results are further from each other than rounding explains."""
    far = np.abs(one.astype(float) - other) > 2 * bound  # False for NaN: not stored to
    return far | (np.isnan(one) != np.isnan(other))


CHECK = Check(
    "random_kernels",
    "kernels drawn from a grammar: the GPU's results, the simulator's and plain Python's",
    pieces,
    measure,
    compare,
    quick=("0", str(WHOLE)),
)

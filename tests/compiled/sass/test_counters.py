"""The compiled code of every kernel asks memory for what the simulator counts in its source."""

from collections import Counter

import pytest

from benchmarks.hardware.checks.kernels import COMPILED, case, simulated
from gemmlab import device, kernels
from gemmlab.compiled.forecast.rung_listings import arguments, launch_listing
from gemmlab.compiled.sass.execution.machine import counters, launch

H200 = device("h200")


def compiled(kernel, problem, tiling):
    """What the launches of a kernel ask for, from their listings."""
    found = Counter()
    for one in kernel.launches:
        code = launch_listing(one, kernel, problem, tiling, H200.compute_capability)
        machine = launch(
            code, *one.launch(problem, tiling, H200), *arguments(kernel, problem, tiling),
            shared_bytes=one.dynamic_shared_bytes(problem, tiling),
        )  # fmt: skip
        found += counters(machine.run())
    return found


def of_memory(found):
    """Counters that compiled code has too: no bytes of lanes, no conflicts, no barriers."""
    kinds = ("requests", "sectors", "wavefronts", "copy_bytes", "tensor_store_bytes")
    return {name: n for name, n in found.items() if n and name.endswith(kinds)}


SOON = ("tiled", "stream_k", "mma_swizzled", "tma_stored")  # one of each kind


@pytest.mark.parametrize(
    "kernel",
    [
        pytest.param(k, id=k.name, marks=[] if k.name in SOON else [pytest.mark.measuring])
        for k in kernels.GPU
    ],
)
def test_compiled_code_asks_for_what_the_simulator_counts(kernel):
    _, problem, tiling = case(kernel.name, H200)
    counted = of_memory(simulated(kernel.name, H200))
    differs, _ = COMPILED.get(kernel.name, ({}, ""))
    expected = {name: n * differs.get(name, 1) for name, n in counted.items()}
    assert of_memory(compiled(kernel, problem, tiling)) == expected

"""The compiled code of every kernel asks memory for what the simulator counts in its source."""

from collections import Counter

import pytest

from gemmlab import Gemm, device, kernels, run
from gemmlab.prediction.rung_listings import arguments, launch_listing, usual
from gemmlab.sass.execution.counting import counters
from gemmlab.sass.execution.launch import launch

H200 = device("h200")
PRODUCT = Gemm(256, 256, 128)  # whole tiles, several in each direction for most kernels
# Of each warp's loads of shared memory in *stream_k* one is missing, of 65.
EACH_LOAD = ("shared_load_requests", "shared_load_wavefronts")
# Compiled ÷ simulated, where that is not 1, and why.
DIFFERS = {
    "tiled": (
        dict(zip(EACH_LOAD, (5 / 8, 3 / 4), strict=True)),
        "four neighbours of As are one load of 16 bytes: the loop over them is unrolled",
    ),
    "stream_k": (
        dict.fromkeys(EACH_LOAD, 64 / 65),
        "of what is loaded ahead, B's fragment is loaded where its step begins, if that comes",
    ),
    **dict.fromkeys(
        ("mma_shared", "mma_swizzled"),
        (
            dict.fromkeys(("global_load_requests", "global_load_sectors"), 2),
            "eight halves are two loads of 8 bytes, which touch the same sectors",
        ),
    ),
}


def compiled(kernel, problem, tiling):
    """What the launches of a kernel ask for, from their listings."""
    found = Counter()
    for one in kernel.launches:
        code = launch_listing(one, kernel, problem, tiling, H200.compute_capability)
        machine = launch(
            code, *one.launch(problem, tiling), *arguments(kernel, problem, tiling),
            shared_bytes=one.dynamic_shared_bytes(problem, tiling),
        )  # fmt: skip
        found += counters(machine.run())
    return found


def of_memory(found):
    """Counters that compiled code has too: no bytes of lanes, no conflicts, no barriers."""
    kinds = ("requests", "sectors", "wavefronts", "copy_bytes", "tensor_store_bytes")
    return {name: n for name, n in found.items() if n and name.endswith(kinds)}


@pytest.mark.parametrize("kernel", kernels.GPU, ids=lambda kernel: kernel.name)
def test_compiled_code_asks_for_what_the_simulator_counts(kernel):
    problem = usual(kernel, PRODUCT)
    tiling = kernel.choose(None, problem, H200)
    counted = of_memory(run(kernel, problem, backend="simulator", tiling=tiling).counters)
    differs, _ = DIFFERS.get(kernel.name, ({}, ""))
    expected = {name: n * differs.get(name, 1) for name, n in counted.items()}
    assert of_memory(compiled(kernel, problem, tiling)) == expected

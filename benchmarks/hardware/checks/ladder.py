"""Every rung on the GPU, on edge shapes, with every α and β: exact on integers.

The simulator's results are exact too (tests/kernels/test_kernels.py), so both have the same bits.
"""

from collections.abc import Iterator, Mapping

import numpy as np

from benchmarks.hardware.check import Check, Comparison, Measured
from benchmarks.samples.edge_shapes import SCALES, edge_shapes
from benchmarks.samples.small_tilings import SMALL
from gemmlab import Gemm, Tiling, kernels
from gemmlab.device import Device
from gemmlab.kernels import Kernel
from gemmlab.measure.backends import gpu


def variants() -> dict[str, tuple[Kernel, Tiling, str]]:
    """Each rung with each of its small tilings and layouts, by name."""
    return {
        f"{name} {tiling} {layout}": (kernels.get(name), tiling, layout)
        for name, tilings in SMALL.items()
        for tiling in tilings
        for layout in kernels.get(name).layouts
    }


def problems(piece: str) -> Iterator[tuple[str, Gemm]]:
    """The problems of a piece, named; those of one shape follow each other."""
    _, tiling, layout = variants()[piece]
    for shape in edge_shapes(tiling):
        for alpha, beta in SCALES:
            name = f"{'×'.join(map(str, shape))}, α = {alpha}, β = {beta}"
            yield name, Gemm(*shape, alpha=alpha, beta=beta, layout=layout)


def pieces(device: Device) -> Mapping[str, str]:
    return dict.fromkeys(variants(), "")


def measure(piece: str, device: Device) -> Measured:
    kernel, tiling, _ = variants()[piece]
    found, runner = {}, None
    for name, problem in problems(piece):
        if runner is None or runner.problem.shapes != problem.shapes:
            runner = gpu.Runner(kernel, problem, tiling, gpu.Matrices(problem))
        found[name] = runner.compute(problem, problem.operands(kind="integers"))
    return found


def compare(piece: str, measured: Measured, device: Device) -> Comparison:
    found = Comparison()
    for name, problem in problems(piece):
        exact = problem.reference(problem.operands(kind="integers")).astype(np.float32)
        found.elements(name, measured[name] != exact, measured[name], exact)
    return found


CHECK = Check(
    "ladder",
    "C of every rung on edge shapes: the GPU's and the exact one, of integers",
    pieces,
    measure,
    compare,
    kept=None,
    quick=tuple(f"{name} {tilings[0]} nn" for name, tilings in SMALL.items()),
)

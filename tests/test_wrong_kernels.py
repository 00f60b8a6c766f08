"""Kernels with one fault each, and the misconception it stands for: all are found, and why.

The files of `tests/wrong_kernels` each hold a `kernel`, the `BASE` that it was made from, what is
to be found (`EXPECT`: a kind of hazard, or "values") and the mark `# fault` at the line of it.
"""

import importlib.util
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from numpy import float32

from gemmlab import cuda, kernels, simulate
from gemmlab.problem import Gemm
from gemmlab.simt import HazardError
from gemmlab.simt.hazards import KINDS
from gemmlab.tiling import Tiling

FILES = sorted((Path(__file__).parent / "wrong_kernels").glob("*.py"))
TILE = 8
MAX_STEPS = 2000

# A ragged one first: with C poisoned, then with α and β; and one that fits its tiles.
PROBLEMS = (
    Gemm(20, 13, 11),
    Gemm(20, 13, 11, alpha=2, beta=-0.5),
    Gemm(16, 16, 16),
    Gemm(9, 8, 400),
)


def load(path):
    spec = importlib.util.spec_from_file_location(f"wrong_kernels.{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def transpose(a, out):
    tile = cuda.shared.array((TILE, TILE + 1), float32)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    x = cuda.blockIdx.x * TILE + tx
    y = cuda.blockIdx.y * TILE + ty
    if y < a.shape[0] and x < a.shape[1]:
        tile[ty, tx] = a[y, x]
    cuda.syncthreads()
    x = cuda.blockIdx.y * TILE + tx
    y = cuda.blockIdx.x * TILE + ty
    if y < out.shape[0] and x < out.shape[1]:
        out[y, x] = tile[tx, ty]


def reduction(x, out):
    part = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    part[t] = x[i] if i < x.size else float32(0)
    cuda.syncthreads()
    half = 32
    while half > 0:
        if t < half:
            part[t] += part[t + half]
        cuda.syncthreads()
        half //= 2
    if t == 0:
        out[cuda.blockIdx.x] = part[0]


def stencil(x, out):
    tile = cuda.shared.array(34, float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    tile[t + 1] = x[i] if i < x.size else float32(0)
    if t == 0:
        tile[0] = x[i - 1] if 0 < i <= x.size else float32(0)
    if t == 31:
        tile[33] = x[i + 1] if i + 1 < x.size else float32(0)
    cuda.syncthreads()
    if i < x.size:
        out[i] = tile[t] + tile[t + 1] + tile[t + 2]


RIGHT = {
    "tiled": kernels.tiled.build(Tiling.square(TILE)),
    "naive": kernels.naive.build(Tiling(block=(TILE, TILE, 1))),
    "transpose": transpose,
    "reduction": reduction,
    "stencil": stencil,
}


def trials(base, launch):
    """The runs of a kernel: (grid, block, arguments, whether the result is right)."""
    rng = np.random.default_rng(0)
    if base in ("tiled", "naive"):
        rung = kernels.get(base)
        for problem in PROBLEMS:
            operands = problem.operands()
            c = operands.c.copy() if problem.beta else np.full_like(operands.c, np.nan)
            grid, block = launch(problem) if launch else rung.launch(
                problem, Tiling(block=(TILE, TILE, TILE if base == "tiled" else 1))
            )  # fmt: skip
            args = (float32(problem.alpha), *operands[:2], float32(problem.beta), c)
            yield grid, block, args, lambda p=problem, c=c, o=operands: p.error(c, o) <= p.tolerance
    elif base == "transpose":
        for shape in ((13, 20), (16, 16), (16, 8)):
            a, out = (
                rng.standard_normal(shape, np.float32),
                np.full(shape[::-1], np.nan, np.float32),
            )
            grid = -(-shape[1] // TILE), -(-shape[0] // TILE)
            yield grid, (TILE, TILE), (a, out), lambda a=a, out=out: np.array_equal(out, a.T)
    else:
        x = rng.integers(-9, 10, 150).astype(np.float32)
        if base == "reduction":
            grid, block, out = 3, 64, np.full(3, np.nan, np.float32)
            expected = [x[:64].sum(), x[64:128].sum(), x[128:].sum()]
        else:
            grid, block, out = 5, 32, np.full(150, np.nan, np.float32)
            expected = np.convolve(x, np.ones(3, np.float32), "same")
        yield grid, block, (x, out), lambda: np.array_equal(out, expected)


def findings(kernel, base, launch=None):
    """What each trial finds: a hazard, "values" for a wrong result, or None."""
    for grid, block, args, is_right in trials(base, launch):
        hazards = simulate(
            kernel, grid, block, *args, on_hazard="collect", max_steps=MAX_STEPS
        ).hazards
        if hazards:
            with pytest.raises(HazardError) as caught:
                simulate(kernel, grid, block, *args, max_steps=MAX_STEPS)
            assert caught.value.hazard.kind == hazards[0].kind
            assert caught.value.hazard.line == hazards[0].line
            yield hazards[0]
        else:
            yield None if is_right() else "values"


@pytest.mark.parametrize("base", RIGHT)
def test_right_kernels_have_no_fault(base):
    assert set(findings(RIGHT[base], base)) == {None}


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_wrong_kernels_are_found(path):
    wrong = load(path)
    faults = [i for i, t in enumerate(path.read_text("utf-8").splitlines(), 1) if "# fault" in t]
    launch = getattr(wrong, "launch", None)
    found = next(filter(None, findings(wrong.kernel, wrong.BASE, launch)), None)
    assert found is not None, "the fault was not found"
    assert len(faults) == 1
    assert wrong.__doc__.startswith(("Misconception: ", "Slip: "))
    if wrong.EXPECT == "values":
        assert found == "values"
    else:
        assert (found.kind, found.line) == (wrong.EXPECT, faults[0]), str(found)
        assert "# fault" in found.code


def test_the_collection():
    """Enough of them, of every kind that a kernel without copies in flight can show."""
    expected = Counter(load(path).EXPECT for path in FILES)
    assert len(FILES) >= 20
    assert set(expected) == {*KINDS, "values"} - {"async-not-waited", "misaligned"}
    assert min(expected.values()) >= 2

"""What the compiler makes of every rung, on three GPUs that need not be here: `ptxas -v` tells."""

import math
import re
from functools import cache

import numpy as np
import pytest

from gemmlab import Gemm, cuda, device, kernels
from gemmlab.compiled.forecast import recorded
from gemmlab.compiled.forecast.rung_listings import launch_listing, rung_listing
from gemmlab.device import name_of
from gemmlab.here.compilers import MLIR, Usage, assemble, chosen
from gemmlab.model.occupancy import resident_blocks
from tests.support.ptx import ptx, types

pytestmark = pytest.mark.ptxas

CAPABILITIES = ((7, 5), (8, 0), (9, 0))
MOST_REGISTERS = 255  # of a thread: CUDA C++ Programming Guide, Compute Capabilities
MOST_SPILLED = 128  # bytes of a thread, in variants that no rung is timed with by default
MOST_STATIC_SHARED = 48 * 1024  # of a block [B], likewise
# Sizes that a kernel may treat apart: aligned, not aligned, smaller than any tile.
PROBLEMS = [Gemm(4096, 4096, k) for k in (4096, 4097, 4098)] + [
    Gemm(4095, 4095, 4095, beta=1.0),
    Gemm(1, 1, 1),
]


def compiled(kernel, problem, tiling, capability):
    """What a rung takes on one GPU, its PTX compiled for the least GPU with that function.

    As recorded, where it is: `test_recorded` compares that with what the compiler makes.
    """
    known = recorded.find(kernel, kernel, problem, tiling, capability)
    if known is not None:
        return Usage(known.registers, known.local_bytes, known.shared_bytes)
    function = kernel.variant(problem, capability)
    least = next(c for c in CAPABILITIES if kernel.variant(problem, c) == function)
    text = compiled_ptx(kernel, problem, tiling, least)
    return assembled(text, capability, kernel.compile(tiling).get("max_registers"))


def assembled(text, capability, registers=None):
    """The `Usage` of the one kernel in a text. What is spilled is in local memory, too."""
    return assemble(text, name_of(capability), registers)[1]


@cache
def compiled_ptx(kernel, problem, tiling, capability):
    matrix = types().Array(getattr(types(), problem.dtype), 2, "C")
    scalar = matrix.dtype
    options = dict(kernel.compile(tiling))
    options.pop("max_registers", None)  # the assembler's
    options.setdefault("launch_bounds", math.prod(kernel.configure(problem, tiling)[1]))
    function = kernel.function(problem, tiling, capability)
    return ptx(function, (scalar, matrix, matrix, scalar, matrix), capability, **options)


def variants(kernel, capability):
    """A problem for each different function that a kernel has on one GPU, with A and B stored by
    rows; by columns, for one problem.
    """
    found = {}
    transposed = [Gemm(4096, 4096, 4096, layout="tt")] * ("tt" in kernel.layouts)
    for problem in (*PROBLEMS, *transposed):
        found.setdefault(str(kernel.variant(problem, capability)), problem)
    return list(found.values())


OLDER = [pytest.param(c, marks=pytest.mark.measuring) for c in CAPABILITIES[:-1]]


@pytest.mark.parametrize("capability", [*OLDER, CAPABILITIES[-1]], ids=lambda c: f"sm_{c[0]}{c[1]}")
@pytest.mark.parametrize("kernel", kernels.LADDER, ids=lambda k: k.name)
def test_every_rung_lives_in_registers(kernel, capability):
    for problem in variants(kernel, capability):
        found = compiled(kernel, problem, kernel.default, capability)
        told = f"{problem}: {found}"
        aligned = kernel.variant(problem, capability).get("aligned", True)
        strides = kernel is kernels.pipelined and chosen() == MLIR  # which are arguments, and many
        if problem.layout == "nn" and (aligned or capability >= (8, 0)) and not strides:
            assert found.local_bytes == 0, told
        else:  # many addresses to keep, and on Turing tiles that pass through registers
            assert found.local_bytes <= MOST_SPILLED + 8 * strides, told
        assert found.registers <= MOST_REGISTERS, told
        assert found.shared_bytes <= MOST_STATIC_SHARED, told


@pytest.mark.parametrize("kernel", kernels.LADDER, ids=lambda k: k.name)
def test_every_recorded_tiling_fits_an_sm(kernel):
    gpu, problem = device("h200"), PROBLEMS[0]
    for tiling in {kernel.default, *kernel.tilings}:
        found = rung_listing(kernel, problem, tiling, gpu)
        threads = math.prod(kernel.configure(problem, tiling)[1])
        shared = found.shared_bytes + kernel.dynamic_shared_bytes(problem, tiling)
        assert shared == kernel.shared_bytes(problem, tiling)
        assert resident_blocks(gpu, threads, shared, found.registers) >= 1
        assert found.local_bytes == 0, f"{tiling}: {found}"


@pytest.mark.parametrize("kernel", kernels.SPLIT_K, ids=lambda k: k.name)
def test_kernels_that_divide_k_live_in_registers_too(kernel):
    for one in kernel.launches:
        for tiling in kernel.tilings:
            assert launch_listing(one, kernel, PROBLEMS[0], tiling, (9, 0)).local_bytes == 0


@pytest.mark.measuring
@pytest.mark.parametrize("kernel", kernels.SPLIT_K, ids=lambda k: k.name)
def test_they_spill_little_where_rows_are_not_aligned(kernel):
    assert rung_listing(kernel, PROBLEMS[3]).local_bytes <= MOST_SPILLED


@pytest.mark.parametrize("kernel", [kernels.vectorised, kernels.warp_tiled], ids=lambda k: k.name)
def test_a_function_becomes_one_text_for_all_gpus(kernel):
    """So that it is compiled once here; numbers of names and the target apart."""

    def text(capability):
        text = compiled_ptx(kernel, PROBLEMS[0], kernel.default, capability)
        text = re.sub(r"^\.target .*|_ZN\w+", "", text, flags=re.MULTILINE)
        numbers = {}
        return re.sub(
            r"(?:_cudapy_smem|gemmlab_shared)_\d+",
            lambda m: str(numbers.setdefault(m[0], len(numbers))),
            text,
        )

    newest = kernel.variant(PROBLEMS[0], CAPABILITIES[-1])
    same = [c for c in CAPABILITIES if kernel.variant(PROBLEMS[0], c) == newest]
    assert len(same) >= 2
    assert len({text(c) for c in (same[0], same[-1])}) == 1


def test_a_spilling_kernel_is_found():
    """Sixty-four sums in 32 registers."""

    def kernel(A, C):
        acc = cuda.local.array(64, np.float32)
        for i in range(64):
            acc[i] = 0
        for p in range(A.shape[0]):
            for i in range(64):
                acc[i] += A[p, i] * A[i, p]
        for i in range(64):
            C[i, cuda.threadIdx.x] = acc[i]

    matrix = types().Array(types().float32, 2, "C")
    text = ptx(kernel, (matrix, matrix), (9, 0))
    whole, few = assembled(text, (9, 0)), assembled(text, (9, 0), registers=32)
    assert whole.local_bytes == 0
    assert few.registers <= 32 < whole.registers
    assert few.local_bytes > 0


def test_an_array_that_is_indexed_at_run_time_is_found_in_local_memory():
    def kernel(A, C):
        many = cuda.local.array(64, np.float32)
        for i in range(64):
            many[i] = 0
        for p in range(A.shape[0]):
            many[np.int32(A[p, 0])] += A[p, 1]
        for i in range(64):
            C[i, cuda.threadIdx.x] = many[i]

    matrix = types().Array(types().float32, 2, "C")
    text = ptx(kernel, (matrix, matrix), (9, 0))
    assert assembled(text, (9, 0)).local_bytes == 64 * 4

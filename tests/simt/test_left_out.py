"""Loads and stores that the compiler leaves out are not counted, and only those."""

from __future__ import annotations

import ast
import re

import numpy as np
import pytest
from numpy import float32

from gemmlab import cuda, simulate
from gemmlab.simt.syntax.rewrite import Statements
from gemmlab.simt.syntax.source import read_source
from tests.support.ptx import compiled
from tests.support.random_accesses import random_kernel

T, TURNS = 16, 5


def zero_filled(A, B, C):
    As = cuda.shared.array((T, T), float32)
    Bs = cuda.shared.array((T, T), float32)
    col, row = cuda.grid(2)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    acc = float32(0)
    for start in range(0, A.shape[1], T):
        if row < A.shape[0] and start + x < A.shape[1]:
            As[y, x] = A[row, start + x]
        else:
            As[y, x] = 0
        if start + y < B.shape[0] and col < B.shape[1]:
            Bs[y, x] = B[start + y, col]
        else:
            Bs[y, x] = 0
        cuda.syncthreads()
        for p in range(T):
            acc += As[y, p] * Bs[p, x]
        cuda.syncthreads()
    if row < C.shape[0] and col < C.shape[1]:
        C[row, col] = acc


def test_stores_of_both_branches_are_one():
    """An H200 counts 35,152 wavefronts of this kernel's stores to shared memory."""
    n = 200
    A, B, C = (np.ones((n, n), float32) for _ in range(3))
    counters = simulate(zero_filled, (13, 13), (T, T), A, B, C).counters
    assert counters["shared_store_wavefronts"] == counters["shared_store_requests"] == 35_152
    assert (n == C).all()


# Of one warp, x is `cuda.grid(1)`; each load or store of a warp is one request.
ACCESSES = {
    "v = P[x]\nR[x] = P[x] * v": (1, 0, 1, 0),  # again
    "R[x] = P[x]\nQ[x] = P[x]": (2, 0, 2, 0),  # R may be P
    "R[x] = P[x]\nQ[x] = R[x]": (1, 0, 2, 0),  # just stored
    "v = P[x]\ncuda.syncthreads()\nR[x] = P[x] + v": (2, 0, 1, 0),
    "v = P[x]\ncuda.syncwarp()\nR[x] = P[x] + v": (2, 0, 1, 0),
    "v = P[x]\ncuda.atomic.add(Q, 0, v)\nR[x] = P[x] + v": (2, 0, 1, 0),
    "v = P[x]\ncuda.atomic.add(S, 0, v)\nR[x] = P[x] + v": (1, 0, 1, 0),  # another memory
    "v = cuda.shfl_down_sync(0xffffffff, P[x], 1)\nR[x] = P[x] + v": (1, 0, 1, 0),
    "v = S[x]\nU[x] = v\nR[x] = S[x] + U[x]": (0, 1, 1, 1),  # two shared arrays never overlap
    "i = x\nv = P[i]\ni += 32\nR[x] = P[i] + v": (2, 0, 1, 0),  # another element
    "if P[x] > 8:\n    R[x] = P[x]\nelse:\n    R[x] = 0": (1, 0, 2, 0),  # stores apart: no loop
    "if x < 16 and P[x] > 0:\n    R[x] = P[x]\nQ[x] = P[x]": (2, 0, 2, 0),
    "if x < 16:\n    v = P[x]\nelse:\n    v = P[x] * 2\nR[x] = P[x] + v": (2, 0, 1, 0),
    "v = P[x] if x < 16 else float32(0)\nR[x] = P[x] + v": (2, 0, 1, 0),
}
# The same of what a loop of TURNS turns holds; `t` counts its turns.
IN_LOOPS = {
    "acc += P[t] * Q[x]": (TURNS + 1, 0, 0, 0),  # Q[x] is loaded once
    "R[x] += P[t]": (TURNS + 1, 0, TURNS, 0),  # and what it stores stays in a register
    "R[t] = P[t] * Q[x]": (2 * TURNS, 0, TURNS, 0),  # R may be Q
    "if P[t] > 0:\n    acc += Q[x]": (2 * TURNS, 0, 0, 0),  # not in every turn
    "acc += P[t] * S[x]": (TURNS, 1, 0, 0),
    "S[x] = P[t]\nacc += Q[x] * S[x]": (TURNS + 1, 0, 0, TURNS),
    "S[x] = P[t]\ncuda.syncthreads()\nacc += Q[x]\ncuda.syncthreads()": (2 * TURNS, 0, 0, TURNS),
    "if P[t] < 0:\n    break\nacc += Q[x]": (2 * TURNS, 0, 0, 0),  # perhaps never
    "for p in range(4):\n    acc += P[t] * Q[x]": (TURNS + 1, 0, 0, 0),  # out of both loops
    "for p in range(t):\n    acc += Q[x]": (TURNS - 1, 0, 0, 0),  # out of the inner one
    "if P[t] > x:\n    S[x] = P[t]\nelse:\n    S[x] = 0": (TURNS, 0, 0, TURNS),  # one store
    "if P[t] > x:\n    S[t] = P[t]\nelse:\n    S[t] = 0": (TURNS, 0, 0, 2 * TURNS),
    "if P[t] > x:\n    U[x] = 1\n    S[x] = 2\nelse:\n    S[x] = 0": (TURNS, 0, 0, 2 * TURNS),
    "if P[t] > x:\n    S[x] = 2\n    U[x] = 1\nelse:\n    S[x] = 0": (TURNS, 0, 0, 3 * TURNS),
}
HEAD = """def kernel(P, Q, R, n):
    S = cuda.shared.array(64, float32)
    U = cuda.shared.array(64, float32)
    x = cuda.grid(1)
    S[x] = 0
    cuda.syncthreads()
    acc = float32(0)
    t = 0
"""


def written(body: str, loop: bool, tmp_path) -> object:
    """A kernel of these statements, in a file of its own."""
    lines = ["for t in range(n):"] if loop else []
    lines += ["    " * loop + line for line in body.splitlines()]
    lines += ["Q[n + 64] = acc"] if loop else []
    path = tmp_path / "kernel.py"
    path.write_text(HEAD + "".join(f"    {line}\n" for line in lines))
    scope = {"cuda": cuda, "float32": float32}
    exec(compile(path.read_text(), str(path), "exec"), scope)
    return scope["kernel"]


def counted(kernel) -> list[int]:
    """Loads and stores of global memory, then of shared memory, in requests of one warp."""
    P = np.linspace(1, 31, 64).astype(float32)
    report = simulate(
        kernel, 1, 32, P, np.ones(128, float32), np.ones(64, float32), TURNS, on_hazard="collect"
    )
    counters = report.counters
    names = ("global_load", "shared_load", "global_store", "shared_store")
    return [counters[f"{name}_requests"] for name in names]


@pytest.mark.parametrize("body", ACCESSES)
def test_accesses(body: str, tmp_path):
    loads, shared_loads, stores, shared_stores = counted(written(body, False, tmp_path))
    assert (loads, shared_loads, stores, shared_stores - 1) == ACCESSES[body]


@pytest.mark.parametrize("body", IN_LOOPS)
def test_accesses_in_loops(body: str, tmp_path):
    loads, shared_loads, stores, shared_stores = counted(written(body, True, tmp_path))
    assert (loads, shared_loads, stores - 1, shared_stores - 1) == IN_LOOPS[body]


def in_source(kernel) -> list[int]:
    """Places in the source that load and store, as `counted` orders them, less those left out."""
    source = read_source(kernel)
    found = Statements(kernel, source, lambda value: value).left_out
    sites = dict.fromkeys(("Pload", "Sload", "Pstore", "Sstore"), 0)
    for node in ast.walk(source.tree):
        for target in [node.target] if isinstance(node, ast.AugAssign) else []:
            if isinstance(target, ast.Subscript) and target not in found.again:
                sites[_kind(target) + "load"] += 1
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            sites[_kind(node) + "store"] += 1
        elif isinstance(node, ast.Subscript) and node not in found.again:
            sites[_kind(node) + "load"] += 1
        if isinstance(node, ast.If) and node in found.together:
            sites[_kind(node.body[-1].targets[0]) + "store"] -= 1
    return list(sites.values())


def _kind(node: ast.Subscript) -> str:
    return "S" if node.value.id == "S" else "P"


@pytest.mark.numba_cuda
@pytest.mark.ptxas
def test_the_compiler_leaves_out_the_same():
    """Random kernels: never more is left out than Numba leaves out, and mostly just as much.

    The rest are stores that a later one replaces, and branches that nobody takes.
    """
    same = 0
    for seed in range(KERNELS):
        kernel = random_kernel(seed)
        ptx = compiled(kernel, *[("float32", 1)] * 3, ("int32", 0), cc=(9, 0))
        left = [
            len(re.findall(rf"\b{op}\.{space}\.", ptx))
            for op in ("ld", "st")
            for space in ("global", "shared")
        ]
        known = in_source(kernel)
        assert all(k >= c for k, c in zip(known, left, strict=True)), (seed, known, left)
        same += known == left
    assert same >= 0.6 * KERNELS


KERNELS = 25

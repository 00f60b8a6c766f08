"""Instructions used wrongly: what the simulator says, at which line, and what the compiler says."""

import linecache
import re
from importlib import import_module
from types import SimpleNamespace

import numpy as np
import pytest

from gemmlab import cuda, instructions, simulate
from gemmlab.instructions import (
    cp_async_16,
    cp_async_commit,
    cp_async_wait,
    mma_m16n8k8_f32_f16,
    stmatrix_x4,
    store_v4,
)
from gemmlab.simt import UnsupportedError
from tests.instructions.misuses.table import CASES, F32, WORDS, Misuse, element, holds
from tests.support.ptx import compiled

for name in ("arguments", "async_copies", "matrices"):  # each adds its kernels to CASES
    import_module(f"tests.instructions.misuses.{name}")
each = pytest.mark.parametrize("case", CASES, ids=lambda case: case.kernel.__name__)


def line_at_fault(case: Misuse) -> int:
    code = case.kernel.__code__
    last = max(line for *_, line in code.co_lines() if line)
    numbers = range(code.co_firstlineno, last + 1)
    [line] = [n for n in numbers if "# fault" in linecache.getline(code.co_filename, n)]
    return line


@each
def test_the_simulator_names_line_thread_and_value(case):
    options = dict(case.options)
    threads = options.pop("threads", 32)
    arrays = [a.copy() for a in case.arrays]
    if case.refused:
        with pytest.raises((TypeError, ValueError, IndexError), match=case.refused) as found:
            simulate(case.kernel, 1, threads, *arrays, **options)
        assert str(found.value).count(f", line {line_at_fault(case)}: ") == 1
        return
    first, *_ = simulate(case.kernel, 1, threads, *arrays, on_hazard="collect", **options).hazards
    assert first.kind == case.kind
    assert re.search(case.message, first.message)
    assert first.line == line_at_fault(case)
    assert first.threads[0] == (case.thread, 0, 0)


@each
@pytest.mark.ptxas
@pytest.mark.filterwarnings("ignore:.*Cannot store to pointer that points to constant memory")
def test_the_compiler_refuses_what_it_can_know(case, monkeypatch):
    dispatcher = pytest.importorskip("numba.cuda.dispatcher")
    standing_in = SimpleNamespace(compute_capability=(9, 0))
    monkeypatch.setattr(dispatcher, "get_current_device", lambda: standing_in)
    arguments = [(str(a.dtype).replace("bool", "boolean"), a.ndim) for a in case.arrays]
    if case.compiled is None:
        compiled(case.kernel, *arguments, cc=(9, 0))
        return
    with pytest.raises(Exception, match=case.compiled) as found:
        compiled(case.kernel, *arguments, cc=(9, 0))
    assert "NotImplemented" not in type(found.value).__name__


def test_the_table_has_every_fault_that_instructions_find():
    kinds = {"out-of-bounds", "misaligned", "async-not-waited", "divergent-barrier"}
    assert {case.kind for case in CASES} == kinds | {""}


# -------------------------------------------------------------------------------- what is not wrong


def used_rightly(a, b, n):
    s = cuda.shared.array((32, 8), np.float32, alignment=16)
    t = cuda.threadIdx.x
    cp_async_16(s, t, 0, a, t, 0, True)
    cp_async_16(s, t, 4, a, t + 100, 0, False)  # nothing is read
    cp_async_commit()
    cp_async_wait(63)  # more groups than there are: nothing to wait for
    a[t, 4] = np.nan  # not copied
    cp_async_wait(0)
    a[t, 1] = 0
    b[t, 0] = s[t, 1] + s[t, 5]
    d = mma_m16n8k8_f32_f16((0, 0), 0, (0, 0, 0, 1.5))
    store_v4(b, t, 4, (1, 2.5, np.float32(t), n))
    b[t, 1] = d[3]


def test_what_looks_wrong_and_is_right():
    b = np.full((32, 8), np.nan, np.float32)
    assert simulate(used_rightly, 1, 32, F32.copy(), b, 7, on_hazard="collect").hazards == []
    assert np.array_equal(b[:, 0], F32[:, 1])
    assert (b[:, 1] == 1.5).all()
    assert np.array_equal(b[:, 4:], [[1, 2.5, t, 7] for t in range(32)])


@pytest.mark.ptxas
def test_what_is_right_compiles():
    text = compiled(used_rightly, ("float32", 2), ("float32", 2), ("int64", 0))
    assert text.count("cp.async.cg") == 2


def on_an_old_gpu(a):
    s = cuda.shared.array((32, 8), np.float32, alignment=16)
    cp_async_16(s, cuda.threadIdx.x, 0, a, cuda.threadIdx.x, 0)


def matrices_stored(a):
    s = cuda.shared.array((32, 8), np.float16, alignment=16)
    stmatrix_x4(s, cuda.threadIdx.x, 0, WORDS)


@pytest.mark.parametrize(
    ("kernel", "gpu", "message"),
    [
        (
            on_an_old_gpu,
            "v100",
            "cp_async_16 needs compute capability 8.0 or more, this GPU has 7.0",
        ),
        (on_an_old_gpu, "t4", "this GPU has 7.5: NVIDIA T4"),
        (matrices_stored, "a100_80gb", "stmatrix_x4 needs compute capability 9.0 or more"),
    ],
)
def test_an_older_gpu_is_refused_with_its_name(kernel, gpu, message):
    with pytest.raises(UnsupportedError, match=message) as found:
        simulate(kernel, 1, 32, F32.copy(), device=gpu)
    assert f"line {kernel.__code__.co_firstlineno + 2}: " in str(found.value)


@pytest.mark.parametrize("lane", [0, 31, np.arange(32)])
def test_layouts_refuse_in_python_as_in_kernels(lane):
    assert np.array_equal(element(lane, 7), (lane // 4 + 8, lane % 4 * 2 + 9))
    with pytest.raises(IndexError, match="element: register 8 of a fragment; use 0 to 7"):
        element(lane, 8)
    with pytest.raises(IndexError, match="holds: register -1 of a fragment"):
        holds(lane, -1, 0, 0)
    with pytest.raises(TypeError, match=r"element takes 2 integers, not \(.*, float64\)"):
        element(lane, 0.5)
    with pytest.raises(TypeError, match="holds takes 4 integers, not "):
        holds(lane, 0)


def test_outside_of_a_kernel_there_is_no_instruction():
    for one in (instructions.load_v4, instructions.shared_view, instructions.cp_async_commit):
        with pytest.raises(RuntimeError, match="has a meaning only inside a kernel"):
            one()

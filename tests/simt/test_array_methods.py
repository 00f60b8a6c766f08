"""Slices with a step, and methods of arrays: `x.sum()`, `x.fill(v)`, `x.flat`."""

from itertools import product

import numpy as np
import pytest
from numpy import float32, float64, int32

from gemmlab import cuda, simulate
from gemmlab.here.compilers import ptx, standing_in
from gemmlab.simt import HazardError, UnsupportedError
from gemmlab.simt.machine.calls import Calls

STARTS, STOPS = (None, 0, 2, -3, 20, -20), (None, 0, 5, -2, 20, -20)


def sliced(start, stop, step):
    def kernel(x, out):
        part = x[start:stop:step]
        out[0] = part.size
        for i in range(part.size):
            out[1 + i] = part[i]

    return kernel


@pytest.mark.parametrize("step", [None, 1, 2, 3, -1, -2, 20, -20])
def test_a_slice_has_the_elements_that_pythons_has(step):
    for start, stop in product(STARTS, STOPS):
        x, out = np.arange(7.0), np.full(8, -1.0)
        simulate(sliced(start, stop, step), 1, 1, x, out)
        right = x[start:stop:step]
        assert out[0] == len(right)
        assert out[1 : 1 + len(right)].tolist() == right.tolist()


def backwards(x, n, out):
    i = cuda.grid(1)
    part = x[n[i] :: -2]
    out[i, 0] = part.size
    for k in range(part.size):
        out[i, 1 + k] = part[k]


def test_each_thread_has_a_slice_of_its_own():
    x, n, out = np.arange(5), np.array([4, 1, -1, -9]), np.full((4, 4), -1)
    simulate(backwards, 1, 4, x, n, out)
    for row, first in zip(out, n, strict=True):
        right = x[first::-2].tolist()
        assert row.tolist() == [len(right), *right, *[-1] * (3 - len(right))]


def every_other(x):
    x[1::2, ::-1] = cuda.threadIdx.x + 1


def test_a_slice_with_a_step_is_stored_to():
    x = np.zeros((4, 3))
    report = simulate(every_other, 1, 1, x)
    assert x.tolist() == [[0] * 3, [1] * 3, [0] * 3, [1] * 3]
    assert report.counters["global_store_requests"] == 6


def with_a_step_of_its_own(x):
    x[:: cuda.threadIdx.x + 1] = 1


def without_a_step(x):
    x[::0] = 1


def test_steps_that_no_slice_has():
    with pytest.raises(TypeError, match="the step of a slice differs between threads"):
        simulate(with_a_step_of_its_own, 1, 2, np.zeros(8))
    with pytest.raises(ValueError, match="the step of a slice is 0"):
        simulate(without_a_step, 1, 1, np.zeros(8))


# ------------------------------------------------------------------------------------ methods


def sums(x, out):
    out[0] = x.sum()
    out[1] = np.sum(x)
    out[2] = sum(x)
    out[3] = x.prod()
    out[4] = x.mean()


@pytest.mark.parametrize("dtype", ["?", "i1", "i4", "i8", "u1", "u4", "u8", "f4", "f8"])
def test_sums_of_all_types(dtype):
    x, out = np.array([3, 0, 1, 1, 7]).astype(dtype)[::2], np.zeros(5)
    simulate(sums, 1, 1, x, out)
    assert out.tolist() == [x.sum(), x.sum(), x.sum(), x.prod(), np.mean(x, dtype=float64)]


def sum_of_third(x, out):
    out[0] = x.sum() / 1
    out[1] = sum(x)
    out[2] = x.mean()


def test_sums_are_rounded_in_the_types_of_numba():
    x, out = np.full(9, 0.1, float32), np.zeros(3)
    simulate(sum_of_third, 1, 1, x, out)
    total = float32(0)
    for value in x:
        total += value
    exact = sum(float(value) for value in x)
    assert total != exact
    assert out.tolist() == [total, exact, float(total) / 9]


def wraps(x, out):
    out[0] = x.sum()
    out[1] = x.prod()


def test_sums_of_small_integers_do_not_wrap():
    x, out = np.full(4, 200, np.uint8), np.zeros(2, np.uint64)
    simulate(wraps, 1, 1, x, out)
    assert out.tolist() == [800, 200**4]


def of_each(x, n, out):
    i = cuda.grid(1)
    own = cuda.local.array(4, float64)
    own.fill(1.5)
    own[: n[i]].fill(i)
    out[i, 0] = own.sum()
    out[i, 1] = x[: n[i]].sum()
    out[i, 2] = x[n[i] :: -1].mean()
    out[i, 3] = sum((n[i], 1)) + x[n[i] : n[i] + 1].item()


def test_each_thread_has_a_sum_of_its_own():
    x, n, out = np.arange(1.0, 6), np.arange(6) % 4, np.zeros((6, 4))
    simulate(of_each, 2, 3, x, n, out)
    for i, (row, size) in enumerate(zip(out, n, strict=True)):
        own = np.full(4, 1.5)
        own[:size] = i
        right = [own.sum(), x[:size].sum(), x[size::-1].mean(), size + 1 + x[size]]
        assert row.tolist() == right


def in_a_branch(x, out):
    i = cuda.grid(1)
    out[i] = -1
    if i % 2:
        out[i] = x[i].sum()
        x[i].fill(9)


def test_only_the_lanes_of_a_branch_have_a_sum():
    x, out = np.arange(12.0).reshape(4, 3), np.zeros(4)
    report = simulate(in_a_branch, 1, 4, x, out)
    assert out.tolist() == [-1, 12, -1, 30]
    assert x[:, 0].tolist() == [0, 9, 6, 9]
    assert report.counters["global_load_requests"] == 3
    assert report.counters["global_store_requests"] == 5


def as_a_loop(x, out):
    i = cuda.grid(1)
    total = float32(0)
    for value in x[i]:
        total += value
    out[i] = total


def as_a_method(x, out):
    i = cuda.grid(1)
    out[i] = x[i].sum()


def test_a_sum_counts_as_its_loop_does():
    x, out = np.ones((40, 5), float32), np.zeros((2, 64), float32)
    reports = [simulate(k, 2, 20, x, o) for k, o in zip((as_a_loop, as_a_method), out, strict=True)]
    assert out[0].tolist() == out[1].tolist()
    assert reports[0].counters == reports[1].counters
    assert reports[0].instructions == reports[1].instructions


def flat(x, out):
    for value in x.flat:
        out[0] += value
    out[1] = len(x.flat)
    x.flat[4] = 10
    out[2] = x[1, 1] + x[0].flat[1]


def test_flat():
    x, out = np.arange(6.0).reshape(2, 3), np.zeros(3)
    simulate(flat, 1, 1, x, out)
    assert out.tolist() == [15, 6, 11]
    with pytest.raises(TypeError, match=r"x\.flat needs an array without gaps"):
        simulate(flat, 1, 1, np.zeros((3, 2)).T, out)


def through_a_view(x):
    row = x.ravel()
    row[cuda.threadIdx.x] = 1


def through_a_filled_view(x):
    x.T.fill(cuda.threadIdx.x)


def test_what_a_view_stores_is_in_the_array():
    x = np.zeros((2, 2))
    simulate(through_a_view, 1, 3, x)
    assert x.tolist() == [[1, 1], [1, 0]]
    with pytest.raises(HazardError, match=r"global-race: .* x\[0, 0\]"):
        simulate(through_a_filled_view, 1, 2, x)


def too_early(x, out):
    part = cuda.shared.array(32, float32)
    t = cuda.threadIdx.x
    part[t] = x[t]
    out[t] = part.sum()


def test_a_sum_without_a_barrier_is_a_race():
    with pytest.raises(HazardError, match=r"(?s)shared-race: .*part\.sum"):
        simulate(too_early, 1, 32, np.zeros(32, float32), np.zeros(32, float32))


def along_an_axis(x, out):
    out[0] = x.sum(0)


def of_many(x, out):
    out[0] = x.item()


def of_a_number(x, out):
    out[0] = np.sum(x[0, 0])


def test_misuse():
    x, out = np.zeros((2, 2)), np.zeros(1)
    with pytest.raises(TypeError, match=r"x\.sum takes no arguments"):
        simulate(along_an_axis, 1, 1, x, out)
    with pytest.raises(ValueError, match=r"x has 4 elements, and \.item"):
        simulate(of_many, 1, 1, x, out)
    with pytest.raises(TypeError, match=r"0\.0 \(float64\) is no array"):
        simulate(of_a_number, 1, 1, x, out)


def least(x, out):
    out[0] = x.min()


def whether_any(x, out):
    out[0] = x.any()


def other_type(x, out):
    out[0] = x.view(int32)[0]


REFUSED = {
    least: "Numba does not compile it",
    whether_any: "write a loop over elements",
    other_type: "make the view on the host",
}


@pytest.mark.parametrize("kernel", REFUSED)
def test_refused(kernel):
    with pytest.raises(UnsupportedError, match=REFUSED[kernel]):
        simulate(kernel, 1, 1, np.zeros(8), np.zeros(8))


# ----------------------------------------------------------------------- what Numba makes of them


def total(x):
    return x.sum()


def total_of_function(x):
    return np.sum(x)


def total_of_python(x):
    return sum(x)


def of_factors(x):
    return x.prod()


def average(x):
    return x.mean()


@pytest.fixture
def numba_type():
    """The type that Numba gives the value of a function of an array."""
    compiler = pytest.importorskip("numba.cuda")
    from numba.cuda import types

    def of(function, dtype):
        signature = (getattr(types, dtype)[:],)
        with standing_in((9, 0)):
            return str(compiler.compile_ptx(function, signature, device=True, cc=(9, 0))[1])

    return of


@pytest.mark.numba_cuda
@pytest.mark.ptxas
@pytest.mark.parametrize(
    "function", [total, total_of_function, total_of_python, of_factors, average]
)
@pytest.mark.parametrize("dtype", ["boolean", "int8", "int64", "uint8", "uint64", "float32"])
def test_values_have_the_types_of_numba(function, dtype, numba_type, monkeypatch):
    returned, run = [], Calls.run
    monkeypatch.setattr(Calls, "run", lambda *a: returned.append(run(*a)) or returned[-1])

    def kernel(x, out):
        out[0] = function(x)

    simulate(kernel, 1, 1, np.ones(3, dtype.replace("boolean", "bool")), np.zeros(1))
    assert [value.dtype.name for value in returned] == [numba_type(function, dtype)]


@pytest.mark.numba_cuda
@pytest.mark.ptxas
@pytest.mark.parametrize(
    ("kernel", "compiles"),
    [
        (sliced(1, 7, 2), True),
        (backwards, True),
        (every_other, True),
        (of_each, True),
        (flat, True),
        (least, False),
    ],
)
def test_numba_compiles_them(kernel, compiles):
    from numba.core.errors import TypingError
    from numba.cuda import types

    dimensions = {backwards: (1, 1, 2), every_other: (2,), of_each: (1, 1, 2), flat: (2, 1)}
    kinds = {"n": types.int64}
    names = kernel.__code__.co_varnames[: kernel.__code__.co_argcount]
    signature = tuple(
        types.Array(kinds.get(name, types.float64), ndim, "C")
        for name, ndim in zip(names, dimensions.get(kernel, (1, 1)), strict=True)
    )
    if compiles:
        assert ".visible .entry" in ptx(kernel, signature, (9, 0))
    else:
        with pytest.raises(TypingError):
            ptx(kernel, signature, (9, 0))

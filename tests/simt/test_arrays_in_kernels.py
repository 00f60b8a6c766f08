"""What kernels do with whole arrays: slices, rows, shapes, complex numbers, their own records."""

from types import SimpleNamespace

import numpy as np
import pytest
from numpy import float64, int32

from gemmlab import cuda, simulate
from gemmlab.simt import HazardError
from tests.support.ptx import compiled

RECORD = np.dtype([("a", np.float32), ("b", np.int64), ("c", np.int32)], align=True)


def fills(n, out):
    i = cuda.grid(1)
    own = cuda.local.array(4, float64)
    own[:] = 1.5
    own[1 : n[i]] = i
    out[i] = -1.0
    for k in range(4):
        out[i, k] = own[k]


def test_a_slice_is_filled_up_to_each_threads_bound():
    n, out = np.arange(6) % 5, np.zeros((6, 5))
    simulate(fills, 2, 3, n, out)
    expected = np.full((6, 5), 1.5)
    for i, row in enumerate(expected):
        row[1 : n[i]] = i
    expected[:, 4] = -1
    np.testing.assert_array_equal(out, expected)


def fills_plane(x):
    tile = cuda.shared.array((4, 8), int32)
    t = cuda.threadIdx.x
    tile[t, :] = t
    cuda.syncthreads()
    x[:, t] = tile[(t + 1) % 4, 0]


def test_a_filled_slice_is_a_store_for_each_element():
    x = np.zeros((3, 4), np.int32)
    counters = simulate(fills_plane, 1, 4, x).counters
    assert x.tolist() == [[1, 2, 3, 0]] * 3
    assert counters["shared_store_requests"] == 8
    assert counters["global_store_requests"] == 3


def fills_together(x, one):
    i = cuda.grid(1)
    if one[i]:
        x[i, :] = 1
    else:
        x[i, :] = 2


def test_slices_in_both_branches():
    x, one = np.zeros((8, 2)), np.arange(8) % 3 == 0
    simulate(fills_together, 1, 8, x, one)
    assert x.tolist() == [[1, 1] if o else [2, 2] for o in one]


def fills_for_all(x):
    x[:] = cuda.threadIdx.x


def test_a_slice_that_all_threads_fill_is_a_race():
    report = simulate(fills_for_all, 1, 8, np.zeros(3), on_hazard="collect")
    assert {h.kind for h in report.hazards} == {"global-race"}


def unpacks(points, out):
    i = cuda.grid(1)
    x, y, z = points[i]
    pair = cuda.local.array(2, float64)
    pair[0], pair[1] = x * y, z
    p, q = pair
    out[i] = p + q


def test_rows_and_local_arrays_are_unpacked():
    points, out = np.random.default_rng(1).random((32, 3)), np.zeros(32)
    report = simulate(unpacks, 1, 32, points, out)
    np.testing.assert_array_equal(out, points[:, 0] * points[:, 1] + points[:, 2])
    assert report.counters["global_load_requests"] == 3


def looks(x, numbers, out):
    i = cuda.grid(1)
    out[i] = x[i] in numbers and x[i] not in numbers[1:]


def test_a_number_is_looked_for_until_it_is_found():
    x, numbers, out = np.arange(32) % 5, np.array([0, 3, 1]), np.zeros(32, bool)
    report = simulate(looks, 1, 32, x, numbers, out)
    assert out.tolist() == [v == 0 for v in x]
    assert simulate(looks, 1, 32, x * 0, numbers, out).counters["global_load_requests"] == 4
    assert report.counters["global_load_requests"] == 6  # x, 3 of numbers, 2 of its end


def shapes(x, out):
    i = cuda.grid(1)
    row = x.reshape(x.size)
    table = x.reshape((2, -1))
    own = cuda.local.array(6, float64).reshape(3, 2)
    own[i % 3, i % 2] = row[i]
    out[i] = table[i // 3, i % 3] + x.transpose()[i % 2, i // 2] + own[i % 3, i % 2]


def test_arrays_in_another_shape():
    x, out = np.arange(6.0).reshape(3, 2), np.zeros(6)
    simulate(shapes, 1, 6, x, out)
    np.testing.assert_array_equal(out, 3 * np.arange(6.0))


def test_only_arrays_without_gaps_have_another_shape():
    with pytest.raises(TypeError, match=r"x\.reshape needs an array without gaps"):
        simulate(shapes, 1, 6, np.arange(6.0).reshape(2, 3).T, np.zeros(6))


def through_a_row(out):
    table = cuda.local.array((2, 2), float64)
    row = table[1]
    row[cuda.threadIdx.x % 2] = 5
    out[cuda.threadIdx.x] = table[1, cuda.threadIdx.x % 2]


def test_what_a_view_of_a_local_array_writes_is_written():
    out = np.zeros(4)
    simulate(through_a_row, 1, 4, out)
    assert (out == 5).all()


def on_the_plane(z, out):
    i = cuda.grid(1)
    w = z[i].conjugate() * 2j
    z[i] += w
    z[i] = -(z[i] ** 2) / (1 + abs(w))
    out[i] = z[i].real + w.imag


def test_complex_numbers():
    rng = np.random.default_rng(2)
    z, out = rng.random(20) + 1j * rng.random(20), np.zeros(20)
    w = z.conj() * 2j
    expected = -((z + w) ** 2) / (1 + abs(w))
    simulate(on_the_plane, 1, 20, z, out)
    np.testing.assert_allclose(z, expected, rtol=1e-14)
    np.testing.assert_allclose(out, expected.real + w.imag, rtol=1e-14)


def adds_complex(z):
    cuda.atomic.add(z, 0, 1.0)


def stores_complex(z, out):
    out[cuda.threadIdx.x] = z[0]


def test_what_numba_does_not_do_with_complex_numbers():
    z = np.zeros(1, complex)
    with pytest.raises(TypeError, match="takes no complex128.*array.real and array.imag"):
        simulate(adds_complex, 1, 1, z)
    with pytest.raises(TypeError, match=r"complex128 has no float64 .* \.real"):
        simulate(stores_complex, 1, 1, z, np.zeros(1))


def records_of_its_own(records, out):
    t = cuda.threadIdx.x
    shared = cuda.shared.array(32, RECORD)
    own = cuda.local.array(2, RECORD)
    shared[t] = records[t]
    own[1] = records[t]
    own[0].a = 2
    cuda.syncthreads()
    other = shared[31 - t]
    out[t] = other.a + other.b + shared[t]["c"] + own[1].a * own[0].a


def test_records_in_shared_and_local_memory():
    records, out = np.zeros(32, RECORD), np.zeros(32)
    records["a"], records["b"], records["c"] = np.arange(32), 100, 7
    report = simulate(records_of_its_own, 1, 32, records, out)
    assert out.tolist() == [31 - t + 100 + 7 + 2 * t for t in range(32)]
    # 24 B apart: eight lanes have 48 words, one in each second or fourth bank
    assert report.counters["shared_store_requests"] == 3


def records_without_a_barrier(records, out):
    t = cuda.threadIdx.x
    shared = cuda.shared.array(32, RECORD)
    shared[t].a = t
    shared[t].c = t
    out[t] = shared[31 - t].a


def test_a_race_of_records_names_the_field():
    with pytest.raises(HazardError, match=r"shared-race: .* shared\.a\[31\]"):
        simulate(records_without_a_barrier, 1, 32, np.zeros(32, RECORD), np.zeros(32))


def unset_record(out):
    own = cuda.local.array(2, RECORD)
    own[0].a = 1
    out[0] = own[0].b


def test_a_field_that_nobody_wrote():
    with pytest.raises(HazardError, match=r"uninitialised-read: .* own\.b\[0\]"):
        simulate(unset_record, 1, 1, np.zeros(1))


KERNELS = [
    (fills, ("int64", 1), ("float64", 2)),
    (fills_plane, ("int32", 2)),
    (unpacks, ("float64", 2), ("float64", 1)),
    (looks, ("int64", 1), ("int64", 1), ("boolean", 1)),
    (shapes, ("float64", 2), ("float64", 1)),
    (on_the_plane, ("complex128", 1), ("float64", 1)),
    (unset_record, ("float64", 1)),
]


@pytest.mark.numba_cuda
@pytest.mark.ptxas
@pytest.mark.parametrize(("kernel", "arguments"), [(k, a) for k, *a in KERNELS])
def test_numba_compiles_them(kernel, arguments, monkeypatch):
    from numba.cuda import dispatcher

    gpu = SimpleNamespace(compute_capability=(9, 0))  # which Numba asks for helpers of its own
    monkeypatch.setattr(dispatcher, "get_current_device", lambda: gpu)
    assert ".visible .entry" in compiled(kernel, *arguments)


@pytest.mark.numba_cuda
@pytest.mark.ptxas
@pytest.mark.parametrize(
    ("kernel", "arguments"),
    [
        (adds_complex, [("complex128", 1)]),
        (stores_complex, [("complex128", 1), ("float64", 1)]),
    ],
)
def test_numba_refuses_what_is_refused(kernel, arguments):
    from numba.core.errors import TypingError

    with pytest.raises(TypingError):
        compiled(kernel, *arguments)

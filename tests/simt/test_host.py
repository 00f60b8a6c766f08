"""The host's half of `cuda`: what a program asks of it, as of `numba.cuda`, and what is refused."""

import asyncio
import re
import subprocess
import sys
import warnings

import numpy as np
import pytest

from gemmlab import device, last_report, simulate
from gemmlab.simt import HazardError, cuda, launch
from gemmlab.simt.cuda import types
from gemmlab.simt.cuda.arrays import DeviceArray, UnwrittenWarning
from gemmlab.simt.cuda.devices import SimulatedTimeWarning
from gemmlab.simt.cuda.kernels import watching
from tests.support.paths import ROOT
from tests.support.ptx import compiled


@cuda.jit
def double(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] *= 2


@cuda.jit
def fills(x):
    i = cuda.grid(1)
    x[i // 8, i % 8] = 1


def on_device(*shape):
    return cuda.to_device(np.arange(np.prod(shape), dtype=np.float32).reshape(shape))


# ---------------------------------------------------------------------------------- device arrays


def test_elements_and_slices_share_the_memory():
    d = on_device(6, 4)
    d[1:3].reshape(8)[0] = 50
    d[:, 3] = 7
    d[0, 0] = d[5, 2]
    host = d.copy_to_host()
    assert (host[1, 0], host[0, 0]) == (50, 22)
    assert (host[:, 3] == 7).all()
    double.forall(4)(d[5])
    assert d[5].copy_to_host().tolist() == [40, 42, 44, 14]
    assert d.ravel()[20] == 40
    assert [part.size for part in d.ravel().split(10)] == [10, 10, 4]


def test_a_transposed_array_is_a_copy():
    d = on_device(2, 3)
    t = d.T
    d[0, 1] = 9
    assert t.shape == (3, 2)
    assert t[1, 0] == 1
    assert t.flags.c_contiguous
    with pytest.raises(NotImplementedError, match="non-2D"):
        on_device(2, 3, 4).transpose()


def test_numpy_takes_a_copy():
    d = on_device(5)
    assert all(type(a) is np.ndarray for a in (np.add(d, 1), np.ones(5) * d, np.asarray(d)))
    assert np.sum(d) == np.asarray(d).sum() == 10
    assert np.allclose(d, np.arange(5))


@pytest.mark.parametrize(
    ("misuse", "error", "message"),
    [
        (lambda d: d + 1, TypeError, "unsupported operand"),
        (lambda d: d.sum(), AttributeError, "no sum; copy_to_host"),
        (lambda d: d.astype(int), AttributeError, "no astype; copy_to_host"),
        (lambda d: d[[0, 1]], NotImplementedError, r"\[0, 1\].*integers and slices"),
        (lambda d: d[d.copy_to_host() > 1], NotImplementedError, "integers and slices"),
        (lambda d: d.copy_to_host(np.zeros(4)), TypeError, "dtype: float32 vs. float64"),
        (lambda d: d.copy_to_host(np.zeros(5, "f4")), ValueError, r"shape: \(4,\) vs. \(5,\)"),
        (lambda d: d.copy_to_device(np.zeros(4)), TypeError, "incompatible dtype"),
        (lambda d: np.add(1, 1, out=d), TypeError, "cannot write to a device array"),
        (lambda d: cuda.to_device(np.zeros((4, 4))[:, 1]), ValueError, "ascontiguousarray"),
        (lambda d: double[1, 4](np.zeros((4, 4))[:, 1]), ValueError, "ascontiguousarray"),
        (lambda d: cuda.as_cuda_array(np.zeros(3)), TypeError, "use to_device"),
    ],
)
def test_misuses_of_device_arrays(misuse, error, message):
    with pytest.raises(error, match=message):
        misuse(on_device(4))


def test_a_view_that_needs_a_copy_is_refused():
    column = on_device(4, 4)[:, 1:3]
    with pytest.raises(NotImplementedError, match="copy_to_host"):
        column.ravel()


def test_what_nobody_has_written_is_known():
    d = cuda.device_array((4, 3), np.float32)
    assert d.unwritten.all()
    assert np.isnan(np.asarray(d)).all()
    d[1] = 0
    d[2:].copy_to_device(np.ones((2, 3), np.float32))
    assert d.unwritten.tolist() == [[True] * 3, [False] * 3, [False] * 3, [False] * 3]
    assert d[1].unwritten.sum() == 0
    assert d.reshape(12)[:4].unwritten.tolist() == [True, True, True, False]
    assert d.T.unwritten[:, 0].all()
    other = cuda.device_array((4, 3), np.float32)
    other.copy_to_device(d)
    assert other.unwritten.tolist() == d.unwritten.tolist()
    assert on_device(3).unwritten is None
    assert cuda.to_device(d).unwritten.sum() == 3


def test_arrays_of_the_host_that_kernels_use():
    for array in (cuda.mapped_array(8), cuda.managed_array(8), cuda.pinned_array(8)):
        array[:] = 1
        double[1, 8](array)
        assert array.sum() == 16
    x = np.ones(8)
    with cuda.mapped(x) as d:
        double[1, 8](d)
    assert x.sum() == 16


def test_in_out_and_inout():
    x, y = np.ones(4), np.ones(4)
    double[1, 4](cuda.In(x))
    double[1, 4](cuda.InOut(y))
    assert (x.sum(), y.sum()) == (4, 8)


def test_a_device_array_says_so():
    assert repr(on_device(3)) == "<device array (3,) of float32; copy_to_host() shows its values>"
    assert isinstance(on_device(3), DeviceArray)


# ----------------------------------------------------------------------------------------- kernels


@cuda.jit("void(float32[:], float32)")
def fill(x, value):
    x[cuda.grid(1)] = value


def test_numbers_become_those_of_the_signature():
    x = np.zeros(4, np.float32)
    exact = np.zeros(4)

    @cuda.jit([(types.float32[:], types.float32), types.void(types.float64[:], types.float32)])
    def either(x, value):
        x[cuda.grid(1)] = value

    fill[1, 4](x, 0.1)
    either[1, 4](exact, 0.1)
    assert x[0] == np.float32(0.1)
    assert exact[0] == float(np.float32(0.1)) != 0.1
    message = r"fill takes \(float32\[:\], float32\).*not \(float64\[:\], float64\)"
    with pytest.raises(TypeError, match=message):
        fill[1, 4](np.zeros(4), 0.1)


def test_a_signature_of_numba_is_read():
    numba = pytest.importorskip("numba")
    kernel = cuda.jit(numba.void(numba.float32[:, ::1], numba.int32))(lambda x, n: None)
    assert kernel.signatures == cuda.jit("(float32[:, :], i4)")(lambda x, n: None).signatures
    assert kernel.overloads[numba.float32[:, ::1], numba.int32] is not None


def test_what_a_program_asks_of_a_kernel():
    kernel = cuda.jit(double.py_func)
    assert len(kernel.overloads) == 0
    kernel.forall(10)(np.zeros(10))
    kernel[1, 32](np.zeros(10, int))
    assert [str(s[0]) for s in kernel.signatures] == ["float64[:]", "int64[:]"]
    (compiled, _) = kernel.overloads.values()
    h200 = device("h200")
    assert compiled.max_cooperative_grid_blocks(1024) == h200.sms * 2
    only = kernel.specialize(np.zeros(3))
    only[1, 3](np.zeros(3))
    with pytest.raises(TypeError, match="takes"):
        only[1, 3](np.zeros(3, np.float32))


@pytest.mark.parametrize(
    ("misuse", "error", "message"),
    [
        (lambda: cuda.jit(fast=True), TypeError, "'fast' is no option of jit; use .*fastmath"),
        (lambda: cuda.jit(link=["a.cu"]), NotImplementedError, "jit\\(device=True\\)"),
        (lambda: cuda.jit("float32["), TypeError, "no signature"),
        (lambda: double[1, 4, "fast"](1), TypeError, "stream='fast'"),
        (lambda: double.forall(-1), ValueError, "ntasks=-1"),
        (lambda: cuda.select_device(1), IndexError, "device 1"),
        (lambda: cuda.get_current_device().SPEED, AttributeError, "'SPEED'.*WARP_SIZE"),
        (lambda: cuda.no_such_name, AttributeError, "cuda.no_such_name"),
        (lambda: cuda.vectorize(lambda x: x), TypeError, "signatures"),
        (lambda: cuda.vectorize(["void(float32)"]), TypeError, "what it returns"),
        (lambda: cuda.vectorize(["f4(f4)"], fast=1), KeyError, "does not support option: 'fast'"),
        (lambda: cuda.guvectorize(["()"], "()->(n)")(min), NameError, "undefined output symbols"),
        (lambda: cuda.event_elapsed_time(cuda.event(), cuda.event()), ValueError, r"record\(\)"),
        (lambda: cuda.reduce(max)(np.zeros((2, 2))), TypeError, "2 dimensions"),
        (lambda: types.float32[3], TypeError, r"float32\[:\]"),
    ],
)
def test_misuses_of_the_host(misuse, error, message):
    with pytest.raises(error, match=message):
        misuse()


def test_options_of_how_to_compile_change_nothing():
    options = {"fastmath": True, "max_registers": 32, "lineinfo": True, "opt": False, "debug": True}
    x = np.ones(8)
    cuda.jit(**options, launch_bounds=128, cache=True, inline="always")(double.py_func)[1, 8](x)
    assert x.sum() == 16


def test_launches_are_watched():
    seen = []

    @cuda.jit
    def beyond(x):
        x[cuda.grid(1)] = 1

    with watching(seen.append):
        beyond[1, 8](np.zeros(4))
        double[1, 8](np.zeros(4))
    assert [len(launched.report.hazards) for launched in seen] == [1, 0]
    assert all(launched.seconds > 0 for launched in seen)
    with pytest.raises(HazardError):
        beyond[1, 8](np.zeros(4))
    assert len(seen) == 2


# ----------------------------------------------------------------------------------- reduce, ufunc


@cuda.reduce
def total(a, b):
    return a + b


@pytest.mark.parametrize("n", [0, 1, 2, 31, 127, 128, 129, 300, 8192, 20_001])
def test_reduce_takes_any_size(n):
    x = np.arange(n, dtype=np.int64)
    assert total(x) == x.sum()
    assert total(cuda.to_device(x), init=5) == x.sum() + 5
    assert total(x, size=n // 2) == x[: n // 2].sum()


@pytest.mark.parametrize(
    ("function", "kind", "told"),
    [
        (lambda a, b: a + b * b, np.float64, "f(f(a, b), c)"),
        (lambda a, b: abs(a - b), np.int32, "f(a, f(b, c))"),
        (lambda a, b: b, np.int32, "f(b, a)"),
        (lambda a, b: a + b, np.float32, ""),
        (lambda a, b: a * b, np.int32, ""),
        (lambda a, b: a or b, np.bool_, ""),
        (lambda a, b: a + b + 0 * cuda.threadIdx.x, np.float64, ""),
    ],
)
def test_a_reduction_that_depends_on_the_order_is_noted(function, kind, told):
    values = (np.random.default_rng(5).normal(size=300) * 100).astype(kind)
    cuda.reduce(function)(cuda.to_device(values))
    notes = [n.message for n in last_report().notes if n.kind == "order-of-reduction"]
    assert len(notes) == bool(told)
    assert told in "".join(notes)


def test_reduce_by_functions_without_a_name_and_into_an_array():
    largest, product = cuda.reduce(lambda a, b: max(a, b)), cuda.reduce(lambda a, b: a * b)
    x = np.array([3.0, -7.0, 5.0])
    assert (largest(x), product(x, init=1)) == (5, -105)
    out = on_device(3)
    assert total(x.astype(np.float32), res=out) is None
    assert out.copy_to_host().tolist() == [1, 1, 2]


def test_vectorize_broadcasts_and_picks_a_type():
    @cuda.vectorize(["float32(float32, float32)", "float64(float64, float64)"])
    def scaled(x, y):
        return x * y + 1

    x, y = np.arange(6, dtype=np.float32).reshape(2, 3), np.arange(3, dtype=np.float32)
    np.testing.assert_array_equal(scaled(x, y), x * y + 1)
    assert (scaled(x, y).dtype, scaled(x, 2.5).dtype) == (np.float32, np.float32)
    assert scaled(2.0, 3.0) == 7
    out = np.zeros((2, 3), np.float32)
    assert scaled(x, y, out=out) is out
    assert out[1, 2] == 11
    assert isinstance(scaled(cuda.to_device(x), y), DeviceArray)
    with pytest.raises(TypeError, match="out is float64"):
        scaled(x, y, out=np.zeros((2, 3)))
    with pytest.raises(TypeError, match="too many untyped scalars"):
        scaled(1j, 2)
    with pytest.raises(TypeError, match="exact types.*not for .int64, number"):
        scaled(np.arange(3), 2)
    total = cuda.vectorize(["int64(int64, int64)"])(lambda a, b: a + b)
    assert total.reduce(np.arange(11)) == 55


# --------------------------------------------------------------------------- device, time, choice


def test_the_device_is_the_one_of_the_file():
    gpu, h200 = cuda.get_current_device(), device("h200")
    assert (gpu.compute_capability, gpu.MULTIPROCESSOR_COUNT) == ((9, 0), h200.sms)
    assert (gpu.MAX_THREADS_PER_BLOCK, gpu.WARP_SIZE) == (1024, 32)
    assert "simulated" in gpu.name
    assert cuda.gpus[0] is cuda.gpus.current is cuda.select_device(0) is gpu
    assert len(cuda.gpus) == 1
    assert cuda.current_context().get_memory_info().total == h200.dram_bytes
    assert cuda.is_available()


def test_detect_prints_what_is_simulated(capsys):
    assert cuda.detect()
    assert "H200" in capsys.readouterr().out


def test_a_time_is_not_taken_for_a_gpus():
    start, stop = cuda.event(), cuda.event()
    start.record()
    double[1, 4](np.zeros(4))
    stop.record()
    with pytest.warns(SimulatedTimeWarning, match="and not a GPU's"):
        assert cuda.event_elapsed_time(start, stop) > 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(SimulatedTimeWarning):
            start.elapsed_time(stop)


def test_a_stream_does_everything_at_once():
    stream, called = cuda.stream(), []
    with stream.auto_synchronize() as same, cuda.defer_cleanup(), cuda.profiling():
        double[1, 4, same](np.zeros(4))
    stream.add_callback(lambda *arguments: called.append(arguments), "arg")

    async def waited():
        return await stream.async_done()

    assert asyncio.run(waited()) is stream
    assert called == [(stream, 0, "arg")]
    assert cuda.event().query()


@pytest.mark.numba_cuda
def test_every_name_of_the_manual_is_there():
    """What `numba.cuda` offers and a program may use is there, or is refused with a reason."""
    from numba import cuda as numbas

    missing = [n for n in cuda.__all__ if not hasattr(numbas, n)]
    assert set(missing) <= {"mapped_array_like", "list_devices", "profiling"}


CHOICE = """
import sys
from gemmlab.here import driver
status = driver.GpuStatus({works}, "", "")
driver.gpu_status = lambda: status
from gemmlab import cuda
from gemmlab.kernels.simt import naive
print(cuda.__name__, naive.cuda.__name__)
"""


@pytest.mark.numba_cuda
@pytest.mark.parametrize("works", [False, True])
def test_a_program_gets_numba_where_a_gpu_works(works):
    answer = subprocess.run(
        [sys.executable, "-c", CHOICE.format(works=works)],
        cwd=ROOT, capture_output=True, encoding="utf-8",
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr
    given, of_the_library = answer.stdout.split()
    assert given == ("numba.cuda" if works else "gemmlab.simt.cuda")
    assert of_the_library == "gemmlab.simt.cuda"


@pytest.mark.ptxas
def test_numba_compiles_what_is_written_with_the_stand_in():
    from gemmlab.simt.cuda import local, shared, syncthreads

    @cuda.jit(device=True, forceinline=True)
    def twice(a):
        return a * types.float32(2)

    def kernel(x):
        i, lane = cuda.grid(1), cuda.laneid
        tile = cuda.shared.array(32, types.float32)
        other = shared.array(32, cuda.float32)
        own = local.array(2, np.float32)
        own[0], own[1] = x[i], cuda.warpsize
        tile[lane] = other[31 - lane] = twice(own[lane % 2])
        syncthreads()
        cuda.atomic.add(x, cuda.threadIdx.x, cuda.shfl_xor_sync(0xFFFFFFFF, tile[lane], 1))

    text = compiled(kernel, ("float32", 1), cc=(8, 0))
    assert re.search(r"bar\.sync|barrier\.sync", text)
    assert re.search(r"atom\.global|red\.global", text)
    assert "shfl.sync.bfly" in text


def test_a_launch_returns_nothing_and_its_report_is_the_last_one(monkeypatch):
    monkeypatch.setattr(launch, "_last", None)
    with pytest.raises(RuntimeError, match="no launch was simulated"):
        last_report()
    assert double[1, 4](np.ones(4)) is None
    assert last_report().source.tree.name == "double"
    report = simulate(double, 2, 4, np.ones(8))
    assert last_report() is report


def test_a_copy_of_what_nobody_has_written_is_warned_of():
    x = cuda.device_array((4, 8), np.float32)
    fills[1, 24](x)
    told = r"8 of the 32 elements that are copied to the host have never been written"
    with pytest.warns(UnwrittenWarning, match=told):
        host = x.copy_to_host()
    assert host[:3].all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x[:3].copy_to_host()
        fills[1, 32](x)
        x.copy_to_host()
        cuda.to_device(host).copy_to_host()

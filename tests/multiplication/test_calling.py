"""The call of `matmul` for arrays of a GPU, on a stand-in for Numba's host functions."""

import sys
from contextlib import nullcontext
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import gemmlab
from gemmlab import Tiling, kernels
from gemmlab.instructions.tensor_maps import TensorMap
from gemmlab.multiplication import calling, choosing, machines
from tests.support.fake_gpu import H200, installed

host = pytest.fixture(installed)


class Array(np.ndarray):
    """An array of a library whose memory is on a GPU."""

    device, __array_priority__ = SimpleNamespace(id=0), 1

    @property
    def __cuda_array_interface__(self):
        return self.__array_interface__


Array.__module__ = "cupy"


def on_gpu(x):
    return x.view(Array)


def exported(interface, owner=None):
    return on_gpu(np.asarray(SimpleNamespace(__array_interface__=interface, owner=owner)))


@pytest.fixture
def gpu(host, monkeypatch):
    """The host, with what `matmul` asks of Numba and of CuPy beside the launches."""
    cupy = ModuleType("cupy")
    stream = SimpleNamespace(ptr=77)
    cupy.cuda = SimpleNamespace(get_current_stream=lambda: stream)
    cupy.empty = lambda shape, dtype: on_gpu(np.full(shape, -1, dtype))
    cupy.ascontiguousarray = lambda x: on_gpu(np.ascontiguousarray(x))
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    host.as_cuda_array = lambda x, sync: exported(x.__cuda_array_interface__, x)
    host.external_stream = lambda pointer: f"stream {pointer}"
    host.gpus = {0: nullcontext()}
    host.get_current_device = lambda: SimpleNamespace(id=0)

    def device_memset(array, value, size, stream):
        host.log.append(("memset", stream))
        array.view(np.uint8)[...] = value

    host.cudadrv = SimpleNamespace(driver=SimpleNamespace(device_memset=device_memset))
    for module in (machines, calling):
        monkeypatch.setattr(module, "numba_cuda", lambda: host)
        monkeypatch.setattr(module, "detect", lambda: H200)
    monkeypatch.setattr(calling, "gpu_status", lambda: SimpleNamespace(works=True))
    monkeypatch.setattr(choosing, "FEW", 0)
    monkeypatch.setattr(calling, "FEW", 0)
    small = Tiling((128, 64, 64), stages=2)
    monkeypatch.setattr(kernels, "tcec_split", SimpleNamespace(default=small))

    def tensor_map(device, address, shape, dtype, rows):
        told = {"data": (address, False), "shape": shape, "typestr": dtype, "version": 3}
        return TensorMap(np.asarray(exported(told)), rows)

    monkeypatch.setattr(machines, "_map", tensor_map)
    yield host
    machines._kernel.cache_clear()
    machines._allow.cache_clear()


def integers(*shape):
    return np.random.default_rng(1).integers(-2, 3, shape).astype(np.float32)


def launches(host):
    return [entry for entry in host.log if entry[0] == "launch"]


def test_arrays_of_a_gpu_stay_there(gpu):
    a, b = integers(2, 40, 70), integers(2, 36, 70)
    c = gemmlab.matmul(on_gpu(a), on_gpu(b).swapaxes(1, 2))
    assert type(c) is Array
    assert np.array_equal(c, a @ b.swapaxes(1, 2))
    assert gemmlab.matmul_choice(on_gpu(a), on_gpu(b).swapaxes(1, 2)).layout == "nt"
    assert len(launches(gpu)) == 6  # scale A and B twice, multiply, lone lines
    assert {entry[3] for entry in launches(gpu)} == {"stream 77"}
    assert ("memset", "stream 77") in gpu.log


def test_what_is_allowed_is_what_is_launched_with(gpu):
    a = on_gpu(integers(40, 40))
    gemmlab.matmul(a, a)
    shared = [entry[4] for entry in launches(gpu) if entry[4]]
    allowed = [entry[2] for entry in gpu.log if entry[0] == "attribute"]
    assert shared == allowed
    assert shared[0] > 48 << 10


@pytest.mark.usefixtures("gpu")
def test_host_arrays_go_to_the_gpu_and_come_back(monkeypatch):
    went = []
    monkeypatch.setattr(calling, "multiply", lambda a, b, budget: went.append((a, b)) or Back())
    a = integers(8, 8)
    assert gemmlab.matmul_choice(a, a).kernel == "tcec_batched"
    assert calling._from_host(*calling.arrays.check(a, a), a, a, None) == "came back"
    assert len(went) == 1


class Back:
    """A result on the GPU."""

    def copy_to_host(self):
        return "came back"


def test_panels_of_the_budget(gpu):
    a, b = integers(130, 40), integers(40, 20)
    budget = 28_000
    c = gemmlab.matmul(on_gpu(a), on_gpu(b), workspace_bytes=budget)
    assert np.array_equal(c, a @ b)
    choice = gemmlab.matmul_choice(on_gpu(a), on_gpu(b), budget)
    assert choice.workspace_bytes <= budget
    assert choice.panels == (1, 128, 20)

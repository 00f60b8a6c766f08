"""A stand-in for Numba's host functions: kernels are simulated, and every launch takes 1 µs."""

import sys
from types import SimpleNamespace

import numpy as np

from gemmlab import device, simulate
from gemmlab.measure.backends import compiled, gpu, sensors

H200 = device("h200")
STATIC, REGISTERS = 2048, 40  # of every kernel that the stand-in compiles


class Array(np.ndarray):
    """An array on the device."""

    @property
    def __cuda_array_interface__(self):
        return self.__array_interface__

    def copy_to_device(self, source):
        self[...] = source

    def copy_to_host(self):
        return np.array(self)


class Function:
    """A compiled kernel, as the driver knows it."""

    handle, device = 7, SimpleNamespace(id=0)

    def __init__(self, log):
        self.kernel = SimpleNamespace(occupancy=self)
        self.log = log

    def max_active_blocks_per_multiprocessor(self, threads, shared):
        self.log.append(("occupancy", threads, shared))
        return 6


class Dispatcher:
    def __init__(self, function, options, log):
        self.function, self.options, self.log = function, options, log

    def typeof_pyval(self, value):
        return type(value).__name__

    def compile(self, types):
        self.log.append(("compile", types, self.options))
        return SimpleNamespace(
            shared_mem_per_block=STATIC,
            regs_per_thread=REGISTERS,
            local_mem_per_thread=0,
            library=SimpleNamespace(get_cufunc=lambda: Function(self.log)),
            bind=lambda: None,
            function=self.function,
            types=types,
        )

    def __getitem__(self, launch):
        def call(*args):
            if self.function.__name__ == "flush":
                self.log.append(("flush",))
                return
            self.log.append(("launch", *launch))
            grid, block, _, shared = launch
            arrays = [x.view(np.ndarray) if isinstance(x, np.ndarray) else x for x in args]
            simulate(self.function, grid, block, *arrays, shared_bytes=shared)

        return call


class Host:
    """The host's half of `numba.cuda`; events are a microsecond apart."""

    def __init__(self):
        self.log = []

    def jit(self, function=None, **options):
        wrap = lambda f: Dispatcher(f, options, self.log)  # noqa: E731
        return wrap if function is None else wrap(function)

    def device_array(self, shape, dtype):
        return np.full(shape, np.nan, dtype).view(Array)

    def device_array_like(self, other):
        return np.full_like(other, np.nan)

    def to_device(self, values):
        return np.array(values).view(Array)

    def event(self, timing):
        return SimpleNamespace(record=lambda: None, synchronize=lambda: None)

    def event_elapsed_time(self, start, end):
        return 1e-3  # ms

    def get_current_device(self):
        return SimpleNamespace(uuid="GPU-1")

    def synchronize(self):
        pass


def installed(monkeypatch):
    """For a fixture: a host whose GPU is an H200, with the log of what was asked of it."""
    host = Host()
    driver = SimpleNamespace(
        CUfunction_attribute=SimpleNamespace(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES="max"),
        CUresult=SimpleNamespace(CUDA_SUCCESS=0),
        CUfunction=lambda pointer: pointer,
        cuKernelSetAttribute=lambda *args: host.log.append(("attribute", *args)) or (0,),
    )
    for name, module in (("cuda", SimpleNamespace()), ("cuda.bindings", SimpleNamespace())):
        monkeypatch.setitem(sys.modules, name, module)
    sys.modules["cuda.bindings"].driver = driver
    monkeypatch.setattr("gemmlab.instructions.host.cuda", lambda: host)
    monkeypatch.setattr(gpu, "detect", lambda: H200)
    monkeypatch.setattr(gpu, "provenance", lambda: {"driver": "580.65", "l2": "flushed"})
    monkeypatch.setattr(gpu, "LOAD_SECONDS", 0.0)
    monkeypatch.setattr(gpu, "FLUSH_BYTES", 1024)
    monkeypatch.setattr(sensors, "sensors", lambda uuid: None)
    monkeypatch.setattr("gemmlab.measure.backends.choose", lambda kernel, backend: "gpu")
    yield host
    compiled._dispatcher.cache_clear()
    gpu._flush.cache_clear()

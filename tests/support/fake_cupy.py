"""A GPU for `matmul`: CuPy and the driver as far as it asks them, whose memory is the host's."""

import sys
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gemmlab.instructions import host as host_side
from gemmlab.multiplication import calling, machines, plans
from gemmlab.tiling import Tiling
from tests.support.fake_driver import TYPES, Driver, described
from tests.support.fake_gpu import H200

SMALL = Tiling((128, 64, 64), stages=2)


class Array(np.ndarray):
    """An array of a library whose memory is on a GPU."""

    device, __array_priority__ = SimpleNamespace(id=0), 1

    @property
    def data(self):
        return SimpleNamespace(ptr=self.__array_interface__["data"][0])


Array.__module__ = "cupy"


def on_gpu(x):
    return x.view(Array)


def gpu(host: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The host, with what `matmul` asks of Numba, of CuPy and of the driver."""
    cupy = ModuleType("cupy")
    cupy.stream = SimpleNamespace(ptr=77)
    cupy.cuda = SimpleNamespace(get_current_stream=lambda device: cupy.stream)
    cupy.taken = []  # bytes beside the result

    def empty(shape, dtype):
        array = np.full(shape, -1 if dtype == "float32" else 0x7F, dtype)
        cupy.taken += [array.nbytes] * (dtype == "uint8")
        return on_gpu(array)

    cupy.empty = empty
    cupy.ascontiguousarray = lambda x: on_gpu(np.ascontiguousarray(x))
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    host.types, host.cupy = TYPES, cupy
    contexts = [
        SimpleNamespace(get_primary_context=lambda i=i: SimpleNamespace(handle=f"context {i}"))
        for i in range(2)
    ]
    host.gpus = contexts
    for module in (machines, calling, plans):
        if hasattr(module, "detect"):
            monkeypatch.setattr(module, "detect", lambda: H200)
    host.driver = Driver(host.log)
    monkeypatch.setattr(plans, "_driver", lambda: host.driver)
    monkeypatch.setattr(plans, "map_bytes", described)
    monkeypatch.setattr(host_side, "cuda", lambda: host)
    monkeypatch.setattr(host_side, "package", lambda: "numba_cuda")
    load = host_side.loaded
    monkeypatch.setattr(host_side, "loaded", lambda one: load(one)._replace(function=one))
    monkeypatch.setattr(calling, "gpu_status", lambda: SimpleNamespace(works=True))
    monkeypatch.setattr(calling, "fastest", lambda *_: ("tcec_batched", SMALL, "asked for"))
    yield host
    for cached in (
        machines._kernel, plans._context, plans._bound, calling.planned, calling._choice,
        calling.halving,
    ):  # fmt: skip
        cached.cache_clear()
    calling.DECIDED.clear()
    calling.OF_TENSORS.clear()
    plans.WORKSPACES.clear()

"""Copies and launches in two streams, timed by events."""

import warnings

import numpy as np
from numba import cuda


@cuda.jit
def scale(x, factor):
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        x[i] *= factor


device = cuda.get_current_device()
print(device.name, "with", device.MULTIPROCESSOR_COUNT, "SMs, warps of", device.WARP_SIZE)
free, total = cuda.current_context().get_memory_info()
assert 0 < free <= total

n = 10_000
host = np.arange(n, dtype=np.float32)
streams = [cuda.stream(), cuda.stream()]
start, stop = cuda.event(), cuda.event()
start.record(streams[0])
with cuda.pinned(host):
    parts = []
    for stream, part in zip(streams, np.split(host, 2)):  # noqa: B905
        with stream.auto_synchronize():
            on_device = cuda.to_device(part, stream=stream)
            scale[8, 128, stream](on_device, np.float32(2))
            parts.append(on_device.copy_to_host(stream=stream))
stop.record(streams[1])
stop.synchronize()
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    assert cuda.event_elapsed_time(start, stop) > 0
cuda.synchronize()
np.testing.assert_array_equal(np.concatenate(parts), 2 * np.arange(n, dtype=np.float32))

pinned = cuda.pinned_array(n, dtype=np.float32)
pinned[:] = host
np.testing.assert_array_equal(cuda.to_device(pinned).copy_to_host(), host)

shared = cuda.mapped_array(100)
shared[:] = 1.0
scale[1, 100](shared, 3.0)
cuda.synchronize()
print("mapped:", shared.sum())

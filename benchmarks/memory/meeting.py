"""Additions that meet at a few addresses: how many a second L2 does.

    python -m benchmarks.memory.meeting OUT.json

It needs a GPU and CuPy. A row's additions, all SMs doing them, go to so many `addresses`, `apart`
bytes from one to the next: lanes at their own choice, or all lanes of a warp (`together`) to one.
`red` and `float` want nothing back, of integers and in FP32; `atom` wants the number from before.

What ships is gemmlab/recorded/<device>/meeting.json.
"""

from __future__ import annotations

import sys
from itertools import product
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from benchmarks.memory.__main__ import SOURCE, rounded
from gemmlab.here.detection import detect
from gemmlab.here.driver import gpu_status, stamp
from gemmlab.measure import store

KINDS = "red", "float", "atom"
BITS = 0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16
APART = 4, 32, 128  # bytes
THREADS, COUNT, TURNS, SAMPLES = 256, 1 << 23, 8, 4


class Meeting(NamedTuple):
    """A row."""

    kind: str
    together: bool
    apart: int
    addresses: int
    rate: float  # additions a second


def main() -> int:
    import cupy

    kernels = cupy.RawModule(code=SOURCE.read_text())
    array = cupy.zeros(1 << 24, cupy.uint32)

    def seconds(kind: str, bits: int, apart: int, together: int) -> float:
        kernel, found = kernels.get_function(f"meet_{kind}"), []
        numbers = map(np.int32, (bits, apart // 4, together, TURNS))
        asked = array, array, *numbers
        for _ in range(SAMPLES + 1):
            begin, end = cupy.cuda.Event(), cupy.cuda.Event()
            begin.record()
            kernel((COUNT // THREADS // TURNS,), (THREADS,), asked)
            end.record()
            end.synchronize()
            found.append(1e-3 * cupy.cuda.get_elapsed_time(begin, end))
        return median(found[1:])

    rows = [
        Meeting(kind, together, apart, 1 << bits,
                rounded(COUNT / seconds(kind, bits, apart, together)))
        for kind, together, apart, bits in product(KINDS, (False, True), APART, BITS)
    ]  # fmt: skip
    told: dict[str, Any] = {
        "device": detect().name, "device_title": detect().title, "driver": gpu_status().driver,
        **stamp("date", "gemmlab"),
    }  # fmt: skip
    store.write(sys.argv[1], told, {"rows": [row._asdict() for row in rows]})
    for row in rows:
        print(*row)
    return 0


if __name__ == "__main__":
    sys.exit(main())

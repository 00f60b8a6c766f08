"""Microbenchmarks of rows that begin anywhere, and of what L2 keeps of an array that comes again.

    python -m benchmarks.memory.rows OUT.json

It needs a GPU and CuPy. The names of the rows:

tma_P, lanes_P : boxes of 64 × 64 halves, by the TMA and by loads of 16 bytes a lane, of a matrix of
    about 16 MB whose rows lie P bytes apart; all SMs read [B/s]
again_S : an array of S MB that all SMs read in order, again and again [B/s]

What ships is gemmlab/recorded/<device>/rows.json.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.memory.__main__ import record, rounded
from gemmlab.here.detection import detect
from gemmlab.instructions.host import described

SOURCE = Path(__file__).with_suffix(".cu")
PITCHES = 5760, 5776, 5792, 5808, 5824, 5840, 5856, 5872, 5888  # in steps of 16 bytes
SIZES = (*range(12, 42, 2), *range(42, 72, 4), 96, 128)  # MB
SIDE, ROWS, ACROSS, STAGES = 64, 2816, 45, 24
SAMPLES = 5


def main() -> int:
    import cupy

    kernels = cupy.RawModule(code=SOURCE.read_text(), options=("-std=c++17",))
    here, out = detect(), cupy.zeros(1, cupy.float32)
    memory = cupy.zeros(1 << 28, cupy.uint8)

    def seconds(launch: Callable[[], None]) -> float:
        found = []
        for _ in range(SAMPLES + 1):
            begin, end = cupy.cuda.Event(), cupy.cuda.Event()
            begin.record()
            launch()
            end.record()
            end.synchronize()
            found.append(1e-3 * cupy.cuda.get_elapsed_time(begin, end))
        return median(found[1:])

    def tma(pitch: int) -> float:
        kernel, turns = kernels.get_function("boxes"), 4000
        kernel.max_dynamic_shared_size_bytes = room = STAGES * SIDE * SIDE * 2 + 1024
        held = described(memory.data.ptr, (ROWS, pitch // 2), pitch, "float16", SIDE, SIDE)
        packed = np.frombuffer(held, np.dtype([("bytes", np.uint8, 128)])).reshape(())
        given = packed, np.int32(ACROSS), np.int32(ROWS // SIDE), np.int32(turns)
        taken = seconds(lambda: kernel((here.sms,), (32,), given, shared_mem=room))
        return turns * here.sms * SIDE * SIDE * 2 / taken

    def lanes(pitch: int) -> float:
        kernel, turns, blocks = kernels.get_function("lanes"), 1024, 2 * here.sms
        counts = np.int32(ACROSS), np.int32(ROWS // 128)
        given = memory, np.uint64(pitch), *counts, out, np.int32(turns)
        taken = seconds(lambda: kernel((blocks,), (1024,), given))
        return turns * blocks * 1024 * 16 / taken

    def again(size: int) -> float:
        kernel, count, turns = kernels.get_function("again"), (size << 20) // 16, 24
        given = memory, np.uint64(count), out, np.int32(turns)
        taken = seconds(lambda: kernel((2 * here.sms,), (1024,), given))
        return turns * count * 16 / taken

    asked = [*(("tma", p) for p in PITCHES), *(("lanes", p) for p in PITCHES)]
    asked += [("again", size) for size in SIZES]
    of = {"tma": tma, "lanes": lanes, "again": again}
    rows = [
        {"name": f"{kind}_{x}", "rate": rounded(of[kind](x)), "unit": "B/s"} for kind, x in asked
    ]
    record(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())

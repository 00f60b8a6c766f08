"""Microbenchmarks of L2, device memory and blocks, whose rates and times the devices' files quote.

    python -m benchmarks.memory OUT.json

It needs a GPU and CuPy. The names of the rows:

load_16MB, load_32MB, …, load_8GB : random sectors of 32 B, a lane each, of an array of that size
load_64B_8GB, load_128B_8GB : as many neighbouring bytes at random places
store_…, store_line_…, store_sector_…, add_…, return_… : one word of each sector stored, one of each
    line, a whole sector; a word added to, without and with the sum returned [places/s]
reads_N, copies_N, stores_each_4_N : blocks stream, N of 256 threads on each SM; the wait for a
    load of 16 B, and the rate of the bytes moved. Quantiles of the waits: 1, 25, 50, 75, 95, 99 %
blocks_T_N : blocks of T threads, N on each SM; from the end of one to the beginning of the next,
    and from the beginning of an SM's first block to that of its second [cycles], medians

What ships is gemmlab/recorded/<device>/memory.json.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from gemmlab.here.detection import detect
from gemmlab.here.driver import gpu_status, stamp
from gemmlab.measure import store

SOURCE = Path(__file__).with_name("kernels.cu")
SIZES = {
    **{f"{2**i >> 20}MB": i for i in range(23, 30)},
    **{f"{2**i >> 30}GB": i for i in range(30, 34)},
}
THREADS, TURNS, ACCESSES = 256, 4, 1 << 25  # of a block; loads of a thread that streams; places
STREAMS = {"reads": 0, "copies": 1, "stores_each_2": 2, "stores_each_4": 4}
QUANTILES = 1, 25, 50, 75, 95, 99


def main() -> int:
    import cupy

    kernels = cupy.RawModule(code=SOURCE.read_text())
    array, other = cupy.zeros(1 << 31, cupy.float32), cupy.zeros(1 << 30, cupy.float32)
    written = cupy.zeros(1 << 27, cupy.float32)  # what L2 is full of before each launch

    def timed(launch: Callable, cold: bool = True) -> float:
        found = []
        for turn in range(6):
            if cold:
                written.fill(turn)
            begin, end = cupy.cuda.Event(), cupy.cuda.Event()
            begin.record()
            launch()
            end.record()
            end.synchronize()
            found.append(1e-3 * cupy.cuda.get_elapsed_time(begin, end))
        return median(found[1:])

    def scattered(name: str, kernel: str, log: int, lanes: int, words: int) -> dict[str, Any]:
        """Groups of 2^lanes lanes go to places of `words` words each in 2^log bytes."""
        bits = log - 2 - (words.bit_length() - 1)
        asked = tuple(np.int32(x) for x in (lanes, bits, words, 1))
        count = ACCESSES << lanes
        seconds = timed(
            lambda: kernels.get_function(kernel)(
                (count // THREADS,), (THREADS,), (array, other, *asked)
            ),
            cold=log > 25,
        )
        return {"name": name, "rate": rounded(ACCESSES / seconds), "unit": "place/s"}

    def streamed(name: str, resident: int, every: int) -> dict[str, Any]:
        kernel = kernels.get_function("stream")
        kernel.max_dynamic_shared_size_bytes = 200 * 1024
        room = 0 if resident == 8 else min(200, 226 // resident - 2) * 1024
        count = 1 << 17
        waited, waits = cupy.zeros(1024, cupy.uint64), cupy.zeros(count // 8, cupy.uint32)
        sums: list[float] = []

        def launch() -> None:
            waited.fill(0)
            asked = array, other, waited, waits, np.int32(TURNS), np.int32(every)
            kernel((count,), (THREADS,), asked, shared_mem=room)
            sums.append(float(waited.sum()))

        seconds = timed(launch)
        loads = count * TURNS * THREADS // 32
        moved = 16 * 32 * loads * (1 + (1 / every if every else 0))
        quantiles = np.percentile(waits.get(), QUANTILES).round().astype(int).tolist()
        return {
            "name": name, "rate": rounded(moved / seconds), "unit": "B/s",
            "wait": rounded(median(sums) / loads), "quantiles": quantiles,
        }  # fmt: skip

    def in_turn(threads: int, resident: int) -> dict[str, Any]:
        kernel = kernels.get_function("blocks")
        kernel.max_dynamic_shared_size_bytes = 200 * 1024
        room = min(200, 226 // resident - 2) * 1024
        count = 132 * resident * 12
        begun, ended = cupy.zeros((2, count), cupy.int64)
        sm = cupy.zeros(count, cupy.int32)
        for _ in range(2):
            kernel((count,), (threads,), (begun, ended, sm, other, np.int32(2000)), shared_mem=room)
        gaps, seconds = [], []
        for mine in (np.flatnonzero(sm.get() == number) for number in range(132)):
            starts, ends = np.sort(begun.get()[mine]), np.sort(ended.get()[mine])
            gaps.append(starts[resident:] - ends[: len(ends) - resident])
            seconds.append(starts[1] - starts[0])
        return {
            "name": f"blocks_{threads}_{resident}", "unit": "cycle",
            "follows": rounded(float(np.median(np.concatenate(gaps)))),
            "begins": rounded(float(np.median(seconds))),
        }  # fmt: skip

    rows = []
    for size, log in SIZES.items():
        rows.append(scattered(f"load_{size}", "load", log, 0, 8))
        rows.append(scattered(f"store_{size}", "store", log, 0, 8))
        rows.append(scattered(f"store_line_{size}", "store", log, 0, 32))
        rows.append(scattered(f"store_sector_{size}", "store", log, 3, 8))
        rows.append(scattered(f"add_{size}", "add", log, 0, 8))
        rows.append(scattered(f"return_{size}", "add_and_return", log, 0, 8))
    for width, lanes in (("64B", 4), ("128B", 5), ("256B", 6)):
        rows.append(scattered(f"load_{width}_8GB", "load", 33, lanes, 1 << lanes))
        rows.append(scattered(f"store_{width}_8GB", "store", 33, lanes, 1 << lanes))
    for resident in (1, 2, 3, 4, 5, 6, 8):
        for name, every in (
            ("reads", 0),
            ("copies", 1),
            ("stores_each_2", 2),
            ("stores_each_4", 4),
        ):
            rows.append(streamed(f"{name}_{resident}", resident, every))
    for threads in (32, 64, 128, 256, 512, 1024):
        rows += [in_turn(threads, resident) for resident in (1, 2) if threads * resident <= 2048]
    record(rows)
    return 0


def record(rows: list[dict[str, Any]]) -> None:
    """Write rows to the file that the command line names, with where they come from."""
    here = detect()
    told = {
        "device": here.name, "device_title": here.title, "driver": gpu_status().driver,
        **stamp("date", "gemmlab"),
    }  # fmt: skip
    store.write(sys.argv[1], told, {"rows": rows})
    for row in rows:
        print(row)


def rounded(value: float) -> float:
    return float(f"{value:.4g}")


if __name__ == "__main__":
    sys.exit(main())

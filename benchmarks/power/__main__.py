"""Loops of one idea each on a GPU: the energy of what they do, and the clock that is left for it.

    python -m benchmarks.power OUT.json

It needs a GPU, CuPy and nvcc. The names of the rows:

idle : nobody does anything; rest_N : threads of N SMs sleep
fma32_N, fma64_N, alu_N : products in FP32 and FP64, additions and logic of integers, in registers
hmma_N, hmma_tf32_N : products of 16×8×16 halves by `mma.sync`, of 16×8×8 in TF32, in registers
wgmma_N, wgmma_tf32_N, wgmma_64_N : of 64×256×16, ×8 and 64×64×16 from shared memory
shared_N, l2_N, dram_N : 16 bytes a lane are read from shared memory, L2 and device memory
stored_l2_N, stored_dram_N : 16 bytes a lane are written
both_R_N : `wgmma` of 64×128×16, beside which other warps read from L2, R times 16 bytes a lane for
    each 16 products; both_dram_R_N : from device memory

Operands are about normal, those of `…_zeros` are 0. N of the SMs have a block. A row has what was
done in a second (products of two numbers, operations of a lane, or bytes), the SMs' clock and the
board's power, all in the last part of a launch that takes more than a second; and `course`, the
clock from its beginning on, between the times of `EDGES`. In `pulses` launches take so long each
and are followed by a flush of L2, as timed launches are; `clocks` has the clock of each.

What ships is gemmlab/recorded/<device>/power.json, and of another board power_beside.json, whose
loops that multiply and read judge the facts of the first.
"""

from __future__ import annotations

import ctypes
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from benchmarks.memory.__main__ import rounded
from gemmlab.here.detection import detect
from gemmlab.here.driver import gpu_status, stamp
from gemmlab.measure import store
from gemmlab.measure.backends import sensors

SOURCE = Path(__file__).with_name("kernels.cu")
SECONDS, SETTLED = 1.2, (0.5, 1.15)  # of a launch, and from when to when it is looked at
TURN = 25e-6  # between two looks at the time [s]
EDGES = 0.1, 0.3, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000  # [ms]
PULSES, PULSED = (0.5, 1, 2, 4, 8), 0.5  # [ms], and for how long they go on [s]
ROOM = 1 << 16  # of times that are noted
ALONE = 120 << 10  # of shared memory, so that an SM has one block [B]
MACS = 64 * 256 * 16
READS = 0, 4, 8, 12, 16


class Loop(NamedTuple):
    """A kernel, its threads, what a block does in a turn, and the bytes through which it goes."""

    kernel: str
    threads: int
    work: int
    size: int = 1 << 20
    reads: int = 0  # of 16 bytes a lane, by half of the warps

    @property
    def read(self) -> int:
        """The bytes that those read in a turn."""
        return 16 * self.reads * self.threads // 2


LOOPS = {
    "rest": Loop("rest", 256, 0),
    "fma32": Loop("fma32", 256, 2 * 256 * 64),
    "fma64": Loop("fma64", 256, 2 * 256 * 16),
    "alu": Loop("alu", 256, 256 * 32),
    "hmma": Loop("hmma", 256, 2 * 8 * 16 * 2048),
    "hmma_tf32": Loop("hmma_tf32", 256, 2 * 8 * 16 * 1024),
    "wgmma": Loop("wgmma", 256, 16 * MACS),
    "wgmma_tf32": Loop("wgmma_tf32", 256, 8 * MACS),
    "wgmma_64": Loop("wgmma_64", 256, 4 * MACS),
    "shared": Loop("shared", 1024, 1024 * 8 * 16),
    "l2": Loop("load", 1024, 1024 * 4 * 16, 1 << 24),
    "dram": Loop("load", 1024, 1024 * 4 * 16, 1 << 33),
    "stored_l2": Loop("store", 1024, 1024 * 4 * 16, 1 << 23),
    "stored_dram": Loop("store", 1024, 1024 * 4 * 16, 1 << 33),
    **{f"both_{n}": Loop("both", 512, 8 * MACS, 1 << 24, n) for n in READS},
    **{f"both_dram_{n}": Loop("both", 512, 8 * MACS, 1 << 33, n) for n in (4, 8)},
}
PARTS = (132,), (33, 66, 99, 132), (66, 132), (33, 132)
CHOSEN = {
    **dict.fromkeys(LOOPS, PARTS[0]),
    **dict.fromkeys(("hmma", "wgmma"), PARTS[1]),
    **dict.fromkeys(("fma32", "hmma_tf32", "wgmma_tf32", "shared", "l2"), PARTS[2]),
    "wgmma_64": PARTS[3],
    **{name: PARTS[3] for name in LOOPS if name.startswith("both")},
}
ZEROS = "fma32", "hmma", "wgmma", "wgmma_tf32"
PULSING = "wgmma", "hmma", "both_8"


class Board:
    """What the board says of itself: its energy since it was started [J], power [W] and clock."""

    def __init__(self, uuid: str) -> None:
        self.nvml = ctypes.CDLL("libnvidia-ml.so.1")
        self.device = ctypes.c_void_p()
        self.nvml.nvmlInit_v2()
        self.nvml.nvmlDeviceGetHandleByUUID(uuid.encode(), ctypes.byref(self.device))
        self.read = sensors.of_library(self.nvml, uuid)

    def energy(self) -> float:
        found = ctypes.c_ulonglong()
        self.nvml.nvmlDeviceGetTotalEnergyConsumption(self.device, ctypes.byref(found))
        return 1e-3 * found.value

    def limit(self) -> float:
        found = ctypes.c_uint()
        self.nvml.nvmlDeviceGetEnforcedPowerLimit(self.device, ctypes.byref(found))
        return 1e-3 * found.value

    def watched(self, of: Any) -> list[tuple[float, float, float, float, int]]:
        """Call something that waits; meanwhile: time, energy, power, clock [Hz], reasons."""
        found, over = [], threading.Event()

        def look() -> None:
            while not over.is_set():
                reading = self.read()
                found.append((time.perf_counter(), self.energy(), reading.power or 0.0,
                              reading.clock or 0.0, reading.reasons or 0))  # fmt: skip
                time.sleep(0.004)

        looking = threading.Thread(target=look)
        looking.start()
        begun = time.perf_counter()
        of()
        over.set()
        looking.join()
        return [(at - begun, *rest) for at, *rest in found]


class Bench:
    """The kernels, compiled, and the memory through which they go."""

    def __init__(self) -> None:
        import cupy

        self.cupy = cupy
        with tempfile.TemporaryDirectory() as folder:
            cubin = Path(folder, "power.cubin")
            subprocess.run(
                ["nvcc", "-cubin", "-arch=sm_90a", "-O3", "-o", cubin, SOURCE], check=True
            )
            self.module = cupy.RawModule(path=str(cubin))
            self.registers = self.module.get_function("fill").num_regs  # it is loaded now
        self.data = cupy.empty(1 << 31, cupy.float32)
        self.written = cupy.zeros(1 << 27, cupy.float32)
        self.trace = cupy.zeros(4 * ROOM * 2, cupy.uint64)
        self.counts = cupy.zeros(1, cupy.uint64)
        self.module.get_function("fill")(
            (1056,), (1024,), (self.data, np.uint64(1 << 29), np.float32(1))
        )

    def launch(self, one: Loop, blocks: int, seconds: float, inner: int, scale: float) -> None:
        kernel = self.module.get_function(one.kernel)
        kernel.max_dynamic_shared_size_bytes = 140 << 10
        kernel((blocks,), (one.threads,), (
            np.uint64(1e9 * seconds), self.trace, np.int32(ROOM), self.counts, np.int32(inner),
            np.float32(scale), self.data, np.uint64(one.size // 16), np.int32(one.reads),
        ), shared_mem=max(ALONE, 131_072 if one.kernel == "shared" else 0))  # fmt: skip

    def wait(self) -> None:
        self.cupy.cuda.runtime.deviceSynchronize()

    def noted(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the times [s] and the cycles that a few blocks noted, a row each."""
        rows = [row[row[:, 0] > 0] for row in self.trace.get().reshape(4, ROOM, 2).astype(np.int64)]
        count = min(len(row) for row in rows if len(row))
        kept = np.stack([row[:count] for row in rows if len(row)])
        return 1e-9 * (kept[:, :, 0] - kept[:, :1, 0]), kept[:, :, 1].astype(float)

    def inner(self, one: Loop, blocks: int) -> int:
        """How often a turn has to do its work to last `TURN`."""
        self.trace.fill(0)
        self.launch(one, blocks, 0.01, 16, 1.0)
        self.wait()
        seconds, _ = self.noted()
        return max(1, round(16 * TURN / float(np.median(np.diff(seconds[0])))))

    def calm(self) -> None:
        """The GPU cools down for a while, and ends with a high clock and little power."""
        time.sleep(0.25)
        self.launch(LOOPS["rest"], 132, 0.1, 20, 1.0)
        self.wait()
        self.trace.fill(0)
        self.wait()


def between(seconds: np.ndarray, cycles: np.ndarray, begin: float, end: float) -> float | None:
    """The clock from one time to another [MHz], the mean of what blocks noted."""
    found = []
    for at, count in zip(seconds, cycles, strict=True):
        first, last = np.searchsorted(at, (begin, end))
        last = min(last, len(at) - 1)
        if last > first and at[last] >= end - 2 * TURN:
            found.append(1e-6 * (count[last] - count[first]) / (at[last] - at[first]))
    return round(float(np.mean(found)), 1) if found else None


def held(bench: Bench, board: Board, name: str, loop: str, blocks: int, scale: float) -> dict:
    """A row of a loop that goes on for longer than a second."""
    one = LOOPS[loop]
    inner = bench.inner(one, blocks)
    bench.calm()

    def call() -> None:
        bench.launch(one, blocks, SECONDS, inner, scale)
        bench.wait()

    seen = [look for look in board.watched(call) if SETTLED[0] <= look[0] <= SETTLED[1]]
    seconds, cycles = bench.noted()
    first, last = np.minimum(np.searchsorted(seconds[0], SETTLED), len(seconds[0]) - 1)
    turns = (last - first) / (seconds[0][last] - seconds[0][first])
    edges = (0.0, *(1e-3 * edge for edge in EDGES))
    return {
        "name": name, "blocks": blocks, "rate": rounded(turns * inner * one.work * blocks),
        "read": rounded(turns * inner * one.read * blocks),
        "clock": between(seconds, cycles, *SETTLED), **said(seen),
        "course": [between(seconds, cycles, a, b) for a, b in pairwise(edges)],
    }  # fmt: skip


def said(seen: list[tuple]) -> dict[str, Any]:
    """The board's power, by its counter of energy and as it says [W], and its clock [MHz]."""
    rows = np.array(seen)
    new = np.flatnonzero(np.diff(rows[:, 1])) + 1  # looks at which the counter has just gone on
    at, energy = rows[new, 0], rows[new, 1]
    return {
        "power": rounded(float(np.polyfit(at, energy, 1)[0])) if len(new) > 2 else None,
        "said": rounded(float(rows[:, 2].mean())), "said_clock": float(np.median(rows[:, 3])) / 1e6,
        "reasons": int(np.bitwise_or.reduce(rows[:, 4].astype(int))),
    }  # fmt: skip


def pulsed(bench: Bench, name: str, loop: str, milliseconds: float) -> dict[str, Any]:
    """A row of launches that take so long each, as the protocol of timed launches has them."""
    one = LOOPS[loop]
    inner = max(1, round(bench.inner(one, 132) * min(1.0, milliseconds / 1)))
    bench.calm()
    clocks, begun = [], time.perf_counter()
    while time.perf_counter() < begun + PULSED and len(clocks) < 200:
        bench.trace[:: 2 * ROOM] = 0
        bench.written += 1
        bench.launch(one, 132, 1e-3 * milliseconds, inner, 1.0)
        bench.wait()
        rows = bench.trace.reshape(4, ROOM, 2)[0, : round(2000 * milliseconds / 25) + 50].get()
        rows = rows.astype(np.int64)
        last = int(np.argmax(rows[:, 0]))
        clocks.append(
            round(1e3 * float(rows[last, 1] - rows[0, 1]) / float(rows[last, 0] - rows[0, 0]), 1)
        )
    return {
        "name": name, "milliseconds": milliseconds, "period": rounded(PULSED / len(clocks)),
        "clocks": clocks[:60],
    }  # fmt: skip


def rows_of(bench: Bench, board: Board) -> Iterator[dict[str, Any]]:
    for loop, parts in CHOSEN.items():
        for blocks in parts:
            yield held(bench, board, f"{loop}_{blocks}", loop, blocks, 1.0)
        if loop in ZEROS:
            yield held(bench, board, f"{loop}_132_zeros", loop, 132, 0.0)


def main() -> int:
    bench = Bench()
    board = Board(_uuid())
    bench.wait()
    time.sleep(1)
    idle = board.watched(lambda: time.sleep(SECONDS))
    rows = [{"name": "idle", **said(idle)}]
    for row in rows_of(bench, board):
        print(row, flush=True)
        rows.append(row)
    pulses = []
    for loop in PULSING:
        for milliseconds in PULSES:
            pulses.append(pulsed(bench, f"{loop}_{milliseconds}ms", loop, milliseconds))
            print(
                pulses[-1]["name"],
                median(pulses[-1]["clocks"]),
                pulses[-1]["clocks"][:12],
                flush=True,
            )
    here = detect()
    told = {
        "device": here.name, "device_title": here.title, "driver": gpu_status().driver,
        **stamp("date", "gemmlab"), "limit_watts": board.limit(),
    }  # fmt: skip
    store.write(sys.argv[1], told, {"rows": rows, "pulses": pulses})
    return 0


def _uuid() -> str:
    """The UUID of the first GPU, as NVML has it."""
    from gemmlab.instructions import host

    return host.cuda().get_current_device().uuid


if __name__ == "__main__":
    sys.exit(main())

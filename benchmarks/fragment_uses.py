"""Time the three uses of fragments against baselines that go through shared memory.

On a machine with a GPU of compute capability 8.0 or more:

    python -m benchmarks.fragment_uses OUT.json

Prefix sums, Householder transformations and Givens rotations (columns as arguments, and embedded)
of batches of 16×16 and 32×32 matrices, as in Figures 4 and 5 of Ootomo and Yokota, "Reducing shared
memory footprint to leverage high throughput on Tensor Cores and its flexible API extension
library" (2023). Each result is compared with NumPy in float64, and registers with shared bit by
bit, before anything is timed. Launches are timed as a CUDA graph, so that short kernels do not wait
for Python. Prints a table and writes OUT.json, which `gemmlab.measure.benchmarks` reads; what
ships is gemmlab/recorded/<device>/fragment_uses.json. Nothing is written where a result is wrong.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gemmlab.here.detection import detect
from gemmlab.here.driver import answered, stamp
from gemmlab.instructions import host
from gemmlab.kernels.fragments import (
    SIZES,
    WARPS,
    WHERE,
    angles,
    givens,
    givens_matrix,
    householder,
    householder_matrix,
    launch,
    matrices,
    multiplying,
    prefix_sum,
    prefix_sum_matrix,
    vectors,
)
from gemmlab.kernels.hashing import functions_hash
from gemmlab.measure import store
from gemmlab.measure.backends.gpu import provenance as on_this_machine
from gemmlab.measure.benchmarks import PERCENTILES, REQUIRED

BATCHES = tuple(4**i for i in range(4, 10))  # 256 to 262,144
COLUMNS = (3, 12)  # that are rotated
ROUNDS = 15  # of each version, in turn
LAUNCHES = 20  # of a round: timed together, so that the launch from Python is hidden
DIFFERENT = 4096  # matrices; larger batches repeat them
ALIKE = 1e-5  # largest error, in units of |X|·|M|; float32 sums of 32 products are far below


class Use(NamedTuple):
    """One use: a kernel for each place, what it takes beside X, and each matrix's M."""

    name: str
    build: Callable
    data: np.ndarray
    matrix: np.ndarray


def uses(rng: np.random.Generator, count: int, m: int) -> list[Use]:
    """The four lines of the table, for so many different matrices of m×m."""
    v, cs = vectors(rng, count, m), angles(rng, count)
    turned = givens_matrix(cs, m, *COLUMNS)
    return [
        Use("prefix sum", lambda where: prefix_sum(m, where), v, prefix_sum_matrix(m)[None]),
        Use("householder", lambda where: householder(m, where), v, householder_matrix(v)),
        Use("givens, arguments", lambda where: givens(m, where), cs, turned),
        Use("givens, embedded", lambda where: givens(m, where, COLUMNS), cs, turned),
    ]


def error(y: np.ndarray, x: np.ndarray, m: np.ndarray) -> float:
    """The largest |Y − X·M| over Σ|X|·|M|; a result that is not finite is infinitely wrong."""
    x, m = x.astype(np.float64), m.astype(np.float64)
    found = np.abs(y - x @ m) / np.maximum(np.abs(x) @ np.abs(m), 1e-30)
    return float(found.max()) if np.isfinite(found).all() else float("inf")


class Timer:
    """Times so many launches of a kernel as one CUDA graph, on a stream of its own."""

    def __init__(self, cuda: Any, kernel: Callable, batch: int, arguments: list) -> None:
        self.cuda, self.stream = cuda, cuda.stream()
        launched = kernel[(*launch(batch), self.stream)]
        self.once = lambda: launched(*arguments)
        self.once()
        self.stream.synchronize()
        self.many = self._graph()
        self.many()
        self.stream.synchronize()

    def _graph(self) -> Callable:
        from cuda.bindings import driver

        handle = self.stream.handle
        stream = driver.CUstream(int(getattr(handle, "value", None) or handle))
        mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
        answered(driver.cuStreamBeginCapture(stream, mode))
        try:
            for _ in range(LAUNCHES):
                self.once()
        finally:
            graph = answered(driver.cuStreamEndCapture(stream))
        ready = answered(driver.cuGraphInstantiate(graph, 0))
        return lambda: answered(driver.cuGraphLaunch(ready, stream))

    def sample(self) -> float:
        """Seconds of one launch."""
        begin, end = self.cuda.event(), self.cuda.event()
        begin.record(self.stream)
        self.many()
        end.record(self.stream)
        end.synchronize()
        return self.cuda.event_elapsed_time(begin, end) * 1e-3 / LAUNCHES


def result(y: np.ndarray, count: int) -> np.ndarray | None:
    """The results for the matrices that differ; None where a repetition has another one."""
    parts = y.reshape(-1, count, *y.shape[1:])
    return parts[0] if all(np.array_equal(part, parts[0]) for part in parts) else None


def one(cuda: Any, use: Use, x: np.ndarray, batch: int, kernels: dict) -> dict:
    """Check a use for one batch, and time it if its results are right."""
    count, m, _ = x.shape
    words = np.resize(x, (batch, m, m)).view(np.uint32)
    data = np.resize(use.data, (batch, *use.data.shape[1:]))
    on_gpu = [cuda.to_device(a) for a in (words, data)]
    results, timers, resources = {}, {}, {}
    for where in WHERE:
        key = use.name, m, where
        if key not in kernels:
            kernels[key] = cuda.jit(launch_bounds=WARPS * 32)(use.build(where))
        y = cuda.to_device(np.full((batch, m, m), np.nan, np.float32))
        given = [*on_gpu, *COLUMNS, y]
        timers[where] = Timer(cuda, kernels[key], batch, given)
        results[where] = result(y.copy_to_host(), count)
        signature = tuple(map(kernels[key].typeof_pyval, given))
        taken = host.loaded(kernels[key].compile(signature))
        resources[where] = {
            "registers": taken.registers,
            "local_bytes": taken.local_bytes,
            "shared_bytes": taken.static_shared_bytes,
        }
    first = results["registers"]
    same = all(y is not None and np.array_equal(first, y) for y in results.values())
    wrong = error(first, x, use.matrix) if same else float("inf")
    row = {
        "use": use.name, "m": m, "batch": batch, "error": float(f"{wrong:.3g}"),
        "bytes": words.nbytes + data.nbytes * ("prefix" not in use.name) + 4 * batch * m * m,
        "resources": resources,
    }  # fmt: skip
    if wrong < ALIKE:
        samples: dict[str, list[float]] = {where: [] for where in WHERE}
        for _ in range(ROUNDS):
            for where in WHERE:
                samples[where].append(timers[where].sample())
        row["ns"] = {
            where: [float(f"{t * 1e9:.5g}") for t in np.percentile(taken, PERCENTILES)]
            for where, taken in samples.items()
        }
    return row


def main(out: Path) -> int:
    cuda, gpu = host.cuda(), detect()
    rows, kernels = [], {}
    print("median of a launch [µs], and how much longer than in registers")
    print(f"{'use':<18} {'m':>3} {'batch':>8}" + "".join(f"{where:>20}" for where in WHERE))
    for m in SIZES:
        for batch in BATCHES:
            rng = np.random.default_rng(batch + m)
            count = min(batch, DIFFERENT)
            x, _ = matrices(rng, count, m)
            for use in uses(rng, count, m):
                row = one(cuda, use, x, batch, kernels)
                rows.append(row)
                print(f"{use.name:<18} {m:>3} {batch:>8}{shown(row)}", flush=True)
    failed = [row for row in rows if "ns" not in row]
    print(f"{len(rows) - len(failed)} of {len(rows)} passed")
    if failed:
        return 1
    here = on_this_machine()
    provenance = {
        "device": gpu.name, "device_title": gpu.title,
        **stamp("date", "python", "numpy", "numba"),
        **{name: here[name] for name in ("driver", "cuda", host.package())},
        "data": f"normal, {DIFFERENT} different matrices, repeated",
        "l2": "warm: what fits stays",
        "columns": COLUMNS, "rounds": ROUNDS, "launches": LAUNCHES,
        "source_sha256": sources(),
    }  # fmt: skip
    store.write(out, provenance, {"rows": rows}, REQUIRED)
    return 0


def sources() -> str:
    """SHA-256 of the source of all uses and of what their launches ask for."""
    return functions_hash(launch, multiplying, prefix_sum, householder, givens)


def shown(row: dict) -> str:
    """A row's times, or why there are none."""
    if "ns" not in row:
        return f"  WRONG: error {row['error']:.1e}"
    medians = [row["ns"][where][PERCENTILES.index(50)] for where in WHERE]
    return "".join(f"{t / 1e3:>12.2f} {t / medians[0]:>6.3f}×" for t in medians)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1])))

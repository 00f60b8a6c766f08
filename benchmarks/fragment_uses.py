"""Time the three uses of fragments against baselines that go through shared memory.

On a machine with a GPU of compute capability 8.0 or more:

    python benchmarks/fragment_uses.py OUT.json

Prefix sums, Householder transformations and Givens rotations (columns as arguments, and embedded)
of batches of 16×16 and 32×32 matrices, as in Figures 4 and 5 of Ootomo and Yokota, "Reducing shared
memory footprint to leverage high throughput on Tensor Cores and its flexible API extension
library" (2023). Each result is compared with NumPy in float64, and registers with shared bit by
bit, before anything is timed. Launches are timed as a CUDA graph, so that short kernels do not wait
for Python; where that fails, one by one, and the output says so. Writes OUT.json, prints a table.
"""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from gemmlab.backends.timing import version
from gemmlab.driver import numba_cuda
from gemmlab.kernels.fragments import (
    WARPS,
    givens,
    householder,
    launch,
    prefix_sum,
)
from gemmlab.kernels.fragments.givens import angles
from gemmlab.kernels.fragments.givens import matrix as givens_matrix
from gemmlab.kernels.fragments.householder import matrix as householder_matrix
from gemmlab.kernels.fragments.householder import vectors
from gemmlab.kernels.fragments.prefix_sum import matrix as triangle
from gemmlab.kernels.fragments.product import matrices

SIZES = (16, 32)
BATCHES = tuple(4**i for i in range(4, 10))  # 256 to 262,144
COLUMNS = (3, 12)  # that are rotated
WHERE = ("registers", "shared")
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
        Use("prefix sum", lambda where: prefix_sum(m, where), v, triangle(m)[None]),
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
    """Times so many launches of a kernel on a stream of its own, as a graph if that is possible."""

    def __init__(self, cuda: Any, kernel: Callable, batch: int, arguments: list) -> None:
        self.cuda, self.stream = cuda, cuda.stream()
        launched = kernel[(*launch(batch), self.stream)]
        self.once = lambda: launched(*arguments)
        self.once()
        self.stream.synchronize()
        self.how = "graph"
        try:
            self.many = self._graph()
        except Exception as error:
            self.how = f"launches, for a graph fails: {type(error).__name__}: {error}"
            self.many = self._launches
        self.many()
        self.stream.synchronize()

    def _launches(self) -> None:
        for _ in range(LAUNCHES):
            self.once()

    def _graph(self) -> Callable:
        from cuda.bindings import driver

        def done(answer: tuple) -> Any:
            if answer[0] != driver.CUresult.CUDA_SUCCESS:
                raise RuntimeError(answer[0].name)
            return answer[1] if len(answer) > 1 else None

        handle = self.stream.handle
        stream = driver.CUstream(int(getattr(handle, "value", None) or handle))
        mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
        done(driver.cuStreamBeginCapture(stream, mode))
        try:
            self._launches()
        finally:
            graph = done(driver.cuStreamEndCapture(stream))
        ready = done(driver.cuGraphInstantiate(graph, 0))
        return lambda: done(driver.cuGraphLaunch(ready, stream))

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
    """Check and time a use for one batch."""
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
        timers[where] = Timer(cuda, kernels[key], batch, [*on_gpu, *COLUMNS, y])
        results[where] = result(y.copy_to_host(), count)
        (compiled,) = kernels[key].overloads.values()
        resources[where] = {
            "registers": compiled.regs_per_thread,
            "local_bytes": compiled.local_mem_per_thread,
            "shared_bytes": compiled.shared_mem_per_block,
        }
    repeated = all(y is not None for y in results.values())
    same = repeated and bool(np.array_equal(results["registers"], results["shared"]))
    wrong = error(results["registers"], x, use.matrix) if same else float("inf")
    row = {
        "use": use.name, "m": m, "batch": batch, "error": wrong, "same_bits": same,
        "passed": same and wrong < ALIKE, "resources": resources,
    }  # fmt: skip
    if row["passed"]:
        samples: dict[str, list[float]] = {where: [] for where in WHERE}
        for _ in range(ROUNDS):
            for where in WHERE:
                samples[where].append(timers[where].sample())
        medians = {where: float(np.median(s)) for where, s in samples.items()}
        moved = words.nbytes + data.nbytes + 4 * batch * m * m
        row |= {
            "timed_as": {where: timers[where].how for where in WHERE},
            "samples": samples,
            "seconds": medians,
            "speedup": medians["shared"] / medians["registers"],
            "bytes_per_second": {where: moved / t for where, t in medians.items()},
        }
    return row


def main(out: Path) -> int:
    cuda = numba_cuda()
    gpu = cuda.get_current_device()
    rows, kernels = [], {}
    print(f"{'use':<18} {'m':>3} {'batch':>8} {'registers':>11} {'shared':>11} {'speedup':>8}")
    for m in SIZES:
        for batch in BATCHES:
            rng = np.random.default_rng(batch + m)
            count = min(batch, DIFFERENT)
            x, _ = matrices(rng, count, m)
            for use in uses(rng, count, m):
                row = one(cuda, use, x, batch, kernels)
                rows.append(row)
                found = f"error {row['error']:.1e}, same bits: {row['same_bits']}"
                if row["passed"]:
                    micro = [row["seconds"][where] * 1e6 for where in WHERE]
                    found = f"{micro[0]:>8.2f} µs {micro[1]:>8.2f} µs {row['speedup']:>8.3f}"
                print(f"{use.name:<18} {m:>3} {batch:>8} {found}", flush=True)
    name = gpu.name.decode() if isinstance(gpu.name, bytes) else gpu.name
    text = {
        "device": name,
        "compute_capability": list(gpu.compute_capability),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba_cuda": version("numba-cuda"),
        "data": f"normal, {DIFFERENT} different; operands stay in L2 where they fit",
        "columns": COLUMNS,
        "rounds": ROUNDS,
        "launches": LAUNCHES,
        "rows": rows,
    }
    out.write_text(json.dumps(text, indent=1) + "\n", "utf-8")
    failed = [r for r in rows if not r["passed"]]
    ways = {how for r in rows for how in r.get("timed_as", {}).values()}
    print(f"timed as: {'; '.join(sorted(ways))}")
    print(f"{len(rows) - len(failed)} of {len(rows)} passed; written to {out}")
    return bool(failed)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1])))

"""Time cuBLAS over many products and ask the profiler which kernels computed them.

    python -m benchmarks.forecast.library FILE PRODUCTS

Needs a GPU, CuPy and PyTorch (for its profiler), and takes a minute. Sizes are powers of two and
three times those, alone or with 1 or 2 more, which spoils the alignment of rows: no held-out set is
like that. Of each tile of each kind of product the two products are kept that fill the SMs best, in
about as many waves as figure 5 has. Blocks of a family of kernels stay where they are mostly fewer
than tiles. In PRODUCTS are all those in FP16 whose rows begin anywhere, with the way of each.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import re
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from statistics import mean, median
from typing import NamedTuple

from benchmarks.guide_figures import FORMATS
from gemmlab.compiled.forecast.library import Products, TileTimes, Ways, kind, write
from gemmlab.device import Device
from gemmlab.here.detection import detect
from gemmlab.here.driver import gpu_status
from gemmlab.measure import store
from gemmlab.model.alignment import WIDEST
from gemmlab.model.quantization import Tile
from gemmlab.problem import LAYOUTS, Gemm

SIZES = (64, 128, 256, 512, 1024, 1536, 2048, 3072, 4096, 8192)  # of m and n
DEPTHS = (256, 1024, 4096, 8192)  # of k
MORE = (0, 1, 2)  # elements beyond these
LONGEST = {"float16": 6e11, "tf32": 6e11, "float32": 8e10}  # operations
SAMPLES = 5
WAVES = 4  # of figure 5
FULL = 0.9  # of the places of all waves
MATHS = 0.6  # of the time, at most, is for moving matrices
APART = 3  # the longer k, as a multiple of the shorter one
LEAST = 5e-6  # between the two times [s], which differ by a tenth of that from launch to launch
MARK = 100_003  # bytes of the memory that is set before the first product; one more for each


class Ran(NamedTuple):
    """A kernel that the profiler saw: its name and its grid."""

    name: str
    grid: tuple[int, int, int]


def products() -> Iterator[Gemm]:
    """What is timed and named."""
    sizes = itertools.product(MORE, FORMATS, LAYOUTS, DEPTHS, SIZES, SIZES)
    for more, dtype, layout, k, m, n in sizes:
        one = Gemm(m + more, n + more, k + more, dtype=dtype, layout=layout)
        if one.flops <= LONGEST[dtype]:
            yield one


def tile_of(name: str) -> Tile:
    """The tile in a kernel's name, rows of our C first: cuBLAS computes Cᵀ.

    >>> tile_of("nvjet_sm90_hsh_256x128_64x4_1x2_h_bz_coopA_NNT")
    (128, 256)
    >>> tile_of("sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x64x32_warpgroupsize1x1x1")
    (64, 128)
    >>> tile_of("void cutlass::Kernel2<cutlass_75_tensorop_f16_s1688gemm_f16_64x32_32x2_nn_align1>")
    (32, 64)
    """
    found = re.search(r"(?:tilesize|nvjet_[a-z0-9]+_[a-z]+_|gemm_(?:[a-z]\w*?_)?)(\d+)x(\d+)", name)
    return int(found[2]), int(found[1])


def plain(name: str) -> str:
    """A kernel's name without what C++ adds to it.

    >>> plain("void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_64x64_32x6_nn_align4>(Params)")
    'cutlass_80_tensorop_s1688gemm_64x64_32x6_nn_align4'
    """
    return re.sub(r"^void cutlass::Kernel2<(\w+)>.*", r"\1", name)


def family(name: str) -> str:
    """The first word of a kernel's name, by which its makers tell their generators apart."""
    return plain(name).partition("_")[0]


def tiles(p: Gemm, tile: Tile) -> int:
    """How many tiles of C a product has."""
    return -(-p.m // tile[0]) * -(-p.n // tile[1])


def alone(kernels: list[Ran]) -> bool:
    """Whether one kernel computed the product, without parts of k."""
    return len(kernels) == 1 and kernels[0].grid[2] == 1


def chosen(
    seconds: dict[Gemm, float], ran: dict[Gemm, list[Ran]], device: Device
) -> list[TileTimes]:
    """The rows to keep: of each kind and tile the two products that say most of it."""
    same, fewer = defaultdict(list), defaultdict(list)
    for p, kernels in ran.items():
        if alone(kernels):
            name, grid = kernels[0]
            same[kind(p), p.m, p.n, name].append(p)
            if tiles(p, tile_of(name)) > device.sms:
                fewer[family(name)].append(math.prod(grid) <= device.sms)
    staying = {name for name, seen in fewer.items() if mean(seen) > 1 / 2}
    best: dict[tuple, tuple[tuple, TileTimes]] = {}
    for (of, m, n, name), found in same.items():
        short, long = (min(found, key=lambda p: p.k), max(found, key=lambda p: p.k))
        if long.k < APART * short.k or seconds[long] - seconds[short] < LEAST:
            continue
        moved = (long.bytes - short.bytes) / device.dram_copy_bandwidth
        if moved > MATHS * (seconds[long] - seconds[short]):
            continue
        tile, ks, times = tile_of(name), (short.k, long.k), (seconds[short], seconds[long])
        one = TileTimes(*of, plain(name), tile, family(name) in staying, m, n, ks, times)
        waves = one.waves(device.sms, m, n)
        use = tiles(long, tile) / device.sms / waves
        rank = (min(use, FULL), -abs(math.log(waves / WAVES)), use)
        if rank > best.get((of, tile), ((),))[0]:
            best[of, tile] = rank, one
    return [one for _, one in best.values()]


def way(kernels: list[Ran]) -> Ways:
    """In what way kernels computed a product: memory that is set, a product, and a sum, or some."""
    product = next(one for one in kernels if "gemm" in one.name or "nvjet" in one.name)
    added = any("splitKreduce" in one.name for one in kernels)
    return Ways(plain(product.name), tile_of(product.name), product.grid[2], added)


def one_by_one(
    seconds: dict[Gemm, float], ran: dict[Gemm, list[Ran]]
) -> tuple[list[Ways], list[Products]]:
    """All products in FP16 whose rows begin anywhere, and the ways in which they were computed."""
    taken = {
        p: way(kernels)
        for p, kernels in ran.items()
        if p.dtype == "float16" and kind(p).aligned < WIDEST
    }
    ways = sorted(set(taken.values()), key=str)
    groups = defaultdict(list)
    for p, its in taken.items():
        groups[kind(p), p.k].append((p.m, p.n, ways.index(its), round(1e9 * seconds[p])))
    return ways, [
        Products(*of, k, *(tuple(column) for column in zip(*rows, strict=True)))
        for (of, k), rows in groups.items()
    ]


class Library:
    """cuBLAS with memory for all products, as the reference rung calls it."""

    def __init__(self, problems: Iterable[Gemm]) -> None:
        import cupy
        from cupy_backends.cuda.libs import cublas

        from gemmlab.kernels import REFERENCE

        self.cupy, self.reference = cupy, REFERENCE
        self.version = cublas.getVersion(cupy.cuda.device.get_cublas_handle())
        most = max(max(r * c for r, c in p.shapes) for p in problems)
        drawn = [cupy.random.standard_normal(most, dtype=cupy.float32) for _ in range(3)]
        self.memory = {4: drawn, 2: [a.astype(cupy.float16) for a in drawn]}
        self.junk = cupy.zeros(1 << 29, cupy.uint8)
        self.events = [[cupy.cuda.Event() for _ in range(2)] for _ in range(SAMPLES)]

    def call(self, p: Gemm) -> Callable[[], None]:
        """What queues a product."""
        size = 2 if p.dtype == "float16" else 4
        a, b, c = (
            memory[: rows * columns].reshape(rows, columns)
            for memory, (rows, columns) in zip(self.memory[size], p.shapes, strict=True)
        )
        return partial(self.reference.function(p, None, None), 1.0, a, b, 0.0, c)

    def mark(self, size: int) -> None:
        """Queue a filling of so much memory, which takes time and clears L2."""
        self.cupy.cuda.runtime.memsetAsync(self.junk.data.ptr, 1, size, 0)

    def seconds(self, p: Gemm) -> float:
        """A product's duration from a cold L2 [s], the median."""
        multiply = self.call(p)
        multiply()
        for before, after in self.events:
            self.mark(self.junk.nbytes)
            before.record()
            multiply()
            after.record()
        after.synchronize()
        elapsed = self.cupy.cuda.get_elapsed_time
        return round(median(elapsed(*pair) for pair in self.events) * 1e-3, 9)

    def names(self, problems: list[Gemm]) -> dict[Gemm, list[Ran]]:
        """The kernels that computed each product: those after its mark."""
        import torch
        from torch.profiler import ProfilerActivity, profile

        torch.zeros(1, device="cuda").item()
        with profile(activities=[ProfilerActivity.CUDA]) as seen:
            for i, p in enumerate(problems):
                self.mark(MARK + i)
                self.call(p)()
            self.cupy.cuda.runtime.deviceSynchronize()
        with tempfile.TemporaryDirectory() as folder:
            seen.export_chrome_trace(f"{folder}/trace.json")
            trace = json.loads(Path(folder, "trace.json").read_text("utf-8"))["traceEvents"]
        found: dict[Gemm, list[Ran]] = {}
        at: list[Ran] = []
        for event in sorted(trace, key=lambda e: e.get("ts", 0)):
            said = event.get("args", {})
            number = said.get("bytes", 0) - MARK
            if event.get("cat") == "gpu_memset" and 0 <= number < len(problems):
                at = found[problems[number]] = []
            elif event.get("cat") == "kernel":
                at.append(Ran(event["name"], tuple(said["grid"])))
        return found


def main() -> None:
    parser = argparse.ArgumentParser(
        "benchmarks.forecast.library", description=__doc__.split("\n")[0]
    )
    parser.add_argument("file", type=Path)
    parser.add_argument("products", type=Path)
    asked = parser.parse_args()
    device, todo = detect(), list(products())
    library = Library(todo)
    for _ in range(200):
        library.call(Gemm(4096, 4096, 4096, dtype="float16"))()
    seconds = {p: library.seconds(p) for p in todo}
    ran = library.names(todo)
    rows = chosen(seconds, ran, device)
    status = gpu_status()
    provenance = {
        "device": device.name,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "driver": status.driver or "unknown",
        "cublas": str(library.version),
        "cupy": library.cupy.__version__,
        "how": f"medians of {SAMPLES} launches, each from a cold L2; {len(todo)} products",
    }
    write(asked.file, provenance, rows)
    ways, products_ = one_by_one(seconds, ran)
    store.write(asked.products, provenance, {"ways": ways, "rows": products_})
    print(f"{len(rows)} tiles of {len(todo)} products in {asked.file}")


if __name__ == "__main__":
    main()

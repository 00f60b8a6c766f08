"""`gemmlab.matmul` beside the library that owns the arrays: PyTorch in FP32, TF32 off.

    python -m benchmarks.matmul OUT.json [--seed 20261126] [--rounds 7] [--forced]

Products that were chosen, squares and shapes of networks; 40 of sizes that nobody chose, m, n and k
of 1 to 65536, drawn evenly by their logarithms, half of them multiples of eight, by the old seed 0,
and 40 by a new one; and ten batches. Normal numbers. Of both ways, which take turns:

  single  a call on an idle GPU, from before it until the stream is done
  loop    of a call, where many follow each other and the last one is waited for

and errors against float64: by norm, and the largest of an element relative to |A||B|. Then joules a
product, by the GPU's own counter, in loops of a second. `--forced` prints what our own kernel takes
where the library multiplies. What ships is gemmlab/recorded/<device>/matmul_torch.json, which
`gemmlab.measure.beside` reads, and `python -m benchmarks.readme` shows it.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from gemmlab import matmul, matmul_choice
from gemmlab.here.detection import detect
from gemmlab.here.driver import gpu_status, stamp
from gemmlab.instructions import host
from gemmlab.measure import store
from gemmlab.measure.backends.gpu import provenance
from gemmlab.measure.benchmarks import REQUIRED
from gemmlab.measure.beside import Beside, Joules
from gemmlab.multiplication import arrays, calling

OLD_SEED, NEW_SEED, DRAWN = 0, 20261126, 40
LARGEST = 65_536  # of a size that is drawn
MOST_BYTES, MOST_FLOPS = 4e9, 4e12  # of a product that is drawn
ROWS = 1024  # of C at most, whose errors are told
LASTS, MOST_CALLS = 0.02, 1000  # of a loop: seconds, about, and calls
WARM_UP = 5
ALONE = 8  # calls that nobody follows, for each loop
CHOSEN = (
    *((1, n, n, n) for n in (256, 512, 1024, 1536, 2048, 4096, 8192)),
    (1, 4096, 11008, 4096), (1, 333, 7777, 5001), (1, 16, 4096, 4096), (1, 1, 8192, 8192),
    (1, 65536, 64, 64), (1, 256, 256, 65536), (1, 512, 512, 16384), (1, 1024, 1024, 8192),
    (1, 512, 512, 65536), (1, 128, 4096, 4096), (1, 777, 555, 333), (1, 2048, 2048, 65536),
    (1, 8192, 256, 4096),
)  # fmt: skip
BATCHES = (
    (64, 512, 512, 512), (16, 1024, 1024, 1024), (256, 128, 128, 128), (1000, 32, 32, 32),
    (256, 1024, 1024, 64), (256, 1024, 64, 1024), (96, 512, 64, 512), (8, 2048, 2048, 128),
    (32, 333, 222, 777), (4, 4096, 4096, 1024),
)  # fmt: skip
OF_ENERGY = (2048, 4096, 8192)


def drawn(count: int, seed: int) -> list[tuple[int, int, int, int]]:
    """Draw one and m, n and k of so many products that fit into memory and end soon.

    >>> drawn(2, 0)
    [(1, 1168, 16, 8), (1, 8262, 24904, 835)]
    """
    rng, found = np.random.default_rng(seed), []
    while len(found) < count:
        sizes = np.rint(LARGEST ** rng.uniform(size=3)).astype(int)
        if rng.random() < 0.5:
            sizes = np.maximum(8, 8 * (sizes // 8))
        m, n, k = map(int, sizes)
        if 4 * (m * k + k * n + m * n) < MOST_BYTES and 2 * m * n * k < MOST_FLOPS:
            found.append((1, m, n, k))
    return found


def shapes(seed: int) -> Iterator[tuple[str, tuple[int, int, int, int]]]:
    """Yield all products: how each came to be here, and batch, m, n and k."""
    yield from (("chosen", one) for one in CHOSEN)
    yield from (("drawn", one) for one in drawn(DRAWN, OLD_SEED))
    yield from (("drawn anew", one) for one in drawn(DRAWN, seed))
    yield from (("batch", one) for one in BATCHES)


class Times(NamedTuple):
    """Seconds of a call: alone, and in a loop."""

    single: float
    loop: float


def times(torch: Any, calls: Sequence[Callable], rounds: int) -> list[Times]:
    """Medians of the two times of each call; calls take turns."""
    for call in calls:
        for _ in range(WARM_UP):
            call()
    alone = [[in_a_row(torch, call, 1) for call in calls] for _ in range(ALONE * rounds)]
    single = [median(column) for column in zip(*alone, strict=True)]
    count = max(2, min(MOST_CALLS, int(LASTS / min(single))))
    rows = [[in_a_row(torch, call, count) for call in calls] for _ in range(rounds)]
    loops = (median(column) for column in zip(*rows, strict=True))
    return [Times(*each) for each in zip(single, loops, strict=True)]


def in_a_row(torch: Any, call: Callable, count: int) -> float:
    """Seconds of each of so many calls, until all are done."""
    torch.cuda.synchronize()
    begun = time.perf_counter()
    for _ in range(count):
        call()
    torch.cuda.synchronize()
    return (time.perf_counter() - begun) / count


def errors(torch: Any, c: Any, a: Any, b: Any) -> tuple[float, float]:
    """The error of some rows of the last product by norm, and the largest relative to |A||B|."""
    c, a, b = (x[-1] if x.dim() == 3 else x for x in (c, a, b))
    step = max(1, len(c) // ROWS)  # rows from everywhere
    c, a, b = c[::step].double(), a[::step].double(), b.double()
    exact = a @ b
    wrong = (c - exact).abs_()
    largest = float((wrong / (a.abs() @ b.abs())).max())
    return float(wrong.norm() / exact.norm()), largest


def product(torch: Any, drawn_how: str, sizes: tuple[int, int, int, int], rounds: int) -> Beside:
    """The row of one problem."""
    batch, m, n, k = sizes
    stacked = (batch,) if batch > 1 else ()
    generator = torch.Generator("cuda").manual_seed(m + n + k)
    a, b = (
        torch.randn(*stacked, *shape, device="cuda", generator=generator)
        for shape in ((m, k), (k, n))
    )
    calls = partial(matmul, a, b), partial(torch.matmul, a, b)
    wrong = [errors(torch, call(), a, b) for call in calls]
    ours, theirs = times(torch, calls, rounds)
    choice = matmul_choice(a, b)
    found = Beside(
        drawn_how, *sizes, choice.kernel, choice.parts, *ours, *theirs, *wrong[0], *wrong[1]
    )
    print(
        f"{drawn_how:10} {found.name:<22} {found.kernel:<12} {found.parts:2} single "
        f"{ours.single * 1e6:9.1f} {theirs.single * 1e6:9.1f} loop {ours.loop * 1e6:9.1f} "
        f"{theirs.loop * 1e6:9.1f} x {found.ratio:5.2f} {found.more * 1e6:+6.1f} us; errors "
        f"{found.error:.1e} {found.their_error:.1e} {found.largest:.1e} {found.their_largest:.1e}",
        flush=True,
    )
    return found


def forced(torch: Any, sizes: tuple[int, int, int, int], rounds: int) -> None:
    """Print what our own kernel takes where the library multiplies, and what was predicted."""
    batch, m, n, k = sizes
    stacked = (batch,) if batch > 1 else ()
    a, b = (torch.randn(*stacked, *shape, device="cuda") for shape in ((m, k), (k, n)))
    if matmul_choice(a, b).kernel != "library" or 2 * batch * m * n * k < 1e9:
        return
    place, _ = arrays.check(a, b)
    terms = calling.checked(None, 3)
    choice = calling._choice(place.device, sizes, "nn", terms)
    ours = partial(calling.multiplied, place, terms, {}, a, b)
    (single, loop), (_, other) = times(torch, [ours, partial(torch.matmul, a, b)], rounds)
    wrong, largest = errors(torch, ours(), a, b)
    print(
        f"forced {sizes} {choice.kernel} {choice.parts} parts: single {single * 1e6:.1f}, loop "
        f"{loop * 1e6:.1f}, torch {other * 1e6:.1f} us, x {other / loop:.2f}; {wrong:.1e} "
        f"{largest:.1e}; {choice.why}",
        flush=True,
    )


def joules(torch: Any, n: int) -> Joules:
    """Joules of a product of n×n matrices by both ways, in loops of a second."""
    import pynvml

    pynvml.nvmlInit()
    card = pynvml.nvmlDeviceGetHandleByIndex(0)
    a, b = (torch.randn(n, n, device="cuda") for _ in range(2))
    found = []
    for call in (partial(matmul, a, b), partial(torch.matmul, a, b)):
        count = max(2, int(1.0 / in_a_row(torch, call, 20)))
        torch.cuda.synchronize()
        before = pynvml.nvmlDeviceGetTotalEnergyConsumption(card)  # millijoules
        seconds = in_a_row(torch, call, count)
        after = pynvml.nvmlDeviceGetTotalEnergyConsumption(card)
        found += [seconds, (after - before) * 1e-3 / count]
    row = Joules(n, *found)
    print(row, flush=True)
    return row


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=NEW_SEED, help="of the sizes drawn anew")
    parser.add_argument("--rounds", type=int, default=7, help="loops of each")
    parser.add_argument("--forced", action="store_true", help="our own kernel everywhere, too")
    asked = parser.parse_args(argv)
    if not gpu_status().works:
        print(f"this needs a GPU: {gpu_status().reason}", file=sys.stderr)
        return 1
    import torch

    torch.set_float32_matmul_precision("highest")
    rows = [product(torch, how, sizes, asked.rounds) for how, sizes in shapes(asked.seed)]
    if asked.forced:
        for _, sizes in shapes(asked.seed):
            forced(torch, sizes, 2)
    write(asked, torch, rows, [joules(torch, n) for n in OF_ENERGY])
    return 0


def write(asked: argparse.Namespace, torch: Any, rows: list[Beside], energy: list[Joules]) -> None:
    """Keep what was measured, with its provenance."""
    device, known = detect(), provenance()
    told = {
        "device": device.name, "device_title": device.title,
        **stamp("date", "python", "numpy", "numba", "torch"),
        **{x: known[x] for x in ("driver", "cuda", host.package(), "cublas")},
        "rounds": asked.rounds, "rows": ROWS, "data": "normal",
        "seeds": [OLD_SEED, asked.seed], "torch_cuda": torch.version.cuda,
    }  # fmt: skip
    store.write(asked.out, told, {"products": rows, "energy": energy}, REQUIRED)


if __name__ == "__main__":
    sys.exit(main())

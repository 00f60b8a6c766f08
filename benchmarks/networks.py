"""Twenty products of neural networks, by our kernels on Tensor Cores beside cuBLAS.

    python -m benchmarks.networks OUT.json [--rounds 20] [--kernels mma_tma,...] [--first 20]

FP16 operands and results, FP32 sums. Most shapes are skinny, ragged or small, as they are where
networks are used; none is left out where it goes badly. Of all kernels and tilings those are run
that `gemmlab.predict` expects to be fastest. All take turns, A B C A B C …, with a cold L2, and are
checked first. "picked" is what is expected to be the fastest, "best" what was. Processes compile
and check side by side; one at a time computes on the GPU. Prints a table and writes OUT.json, which
`gemmlab.measure.benchmarks` reads; what ships is gemmlab/recorded/<device>/networks.json.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from benchmarks import turns
from gemmlab import Gemm, kernels, predict
from gemmlab.device import Device
from gemmlab.here.detection import detect
from gemmlab.here.driver import gpu_status, stamp
from gemmlab.instructions import host
from gemmlab.kernels import Kernel
from gemmlab.kernels.hashing import source_hash
from gemmlab.kernels.tensor_core.shared.shared_layouts import are_aligned
from gemmlab.measure import store
from gemmlab.measure.backends import gpu
from gemmlab.measure.backends.checking import check
from gemmlab.measure.backends.timing import DATA
from gemmlab.measure.benchmarks import REQUIRED, Layer, Timed
from gemmlab.model.layers import Attention, Convolution, Linear, Recurrent, linear
from gemmlab.model.occupancy import check_block
from gemmlab.problem import Operands
from gemmlab.tiling import Tiling

ROUNDS = 20
MOST = 10  # runs of ours for each product
FILLS = 1, 2, 3  # blocks for each SM, by which k is split
KERNELS = (
    kernels.mma_pipelined, kernels.mma_tma, kernels.mma_split_k, kernels.tma_stored,
    kernels.tma_multicast, kernels.tma_padded, kernels.wgmma_split_k,
    kernels.cluster_split_k,
)  # fmt: skip
# Their tiles come in rows of 128 bytes.
IN_BOXES = (
    kernels.mma_tma, *kernels.HOPPER, *kernels.HOPPER_CLUSTERS, *kernels.HOPPER_SPLIT_K,
    *kernels.HOPPER_CLUSTER_SPLIT_K,
)  # fmt: skip
FIRST_LAYER = Convolution(32, 3, 224, 224, 64, (7, 7), stride=2, padding=3)
WIDE_LAYER = Convolution(32, 64, 56, 56, 64, (3, 3), padding=1)
NETWORKS = {
    # One column lies in memory as one row does, and rows may begin anywhere else.
    "language model, one word, square projection": replace(
        linear(4096, 4096, batch=1), layout="nt"
    ),
    "language model, 16 words, square projection": linear(4096, 4096, batch=16),
    "language model, 16 words, to a wide layer": linear(11008, 4096, batch=16),
    "language model, 64 words, from a wide layer": linear(4096, 11008, batch=64),
    "language model, 512 words, three projections": linear(12288, 4096, batch=512),
    "language model, 2048 words, square projection": linear(4096, 4096, batch=2048),
    "language model, 4096 words, to a wide layer": linear(11008, 4096, batch=4096),
    "language model, gradient of weights": Linear(4096, 1024, batch=8192).weight_gradient,
    "language model, gradient of activations": Linear(1024, 4096, batch=8192).activation_gradient,
    "vocabulary of 32000, 128 words": linear(32000, 4096, batch=128),
    "vocabulary of 50257, 1024 words": linear(50257, 768, batch=1024),
    "classes of images": linear(1000, 2048, batch=256),
    "recommender, 13 numbers in": linear(512, 13, batch=8192),
    "recommender, 479 numbers in": linear(256, 479, batch=4096),
    "convolution, first layer": FIRST_LAYER.forward,
    "convolution, 3×3": WIDE_LAYER.forward,
    "convolution, 1×1 on 7×7 images": Convolution(32, 512, 7, 7, 2048, (1, 1)).forward,
    "convolution, gradient of weights": WIDE_LAYER.weight_gradient,
    "attention, scores of one head": Attention(1, 1, 2048, 2048, 64).scores.gemm,
    "recurrent layer, one step": Recurrent("lstm", 1024, 1024, batch=64, steps=1).of_state.gemm,
}


def warps(block: tuple[int, int, int], warp: tuple[int, int], stages: int) -> Tiling:
    """A tiling for `mma.sync`, whose warps have 8×4 threads."""
    return Tiling(block=block, warp=warp, thread=(warp[0] // 8, warp[1] // 4), stages=stages)


# Beside the kernels' own: thin tiles keep all SMs busy with few rows or columns of C.
THIN = {
    kernels.mma_pipelined: (
        warps((32, 16, 64), (16, 16), 10),
        warps((32, 32, 128), (16, 16), 5),
        warps((32, 64, 128), (16, 32), 4),
        warps((64, 32, 128), (32, 16), 4),
        warps((32, 64, 32), (16, 32), 1),
        warps((64, 64, 32), (32, 32), 1),
        warps((64, 64, 32), (32, 32), 2),
        warps((128, 64, 32), (32, 32), 2),
    ),
    kernels.mma_split_k: (
        warps((64, 64, 64), (32, 32), 6),
        warps((128, 64, 64), (64, 32), 4),
    ),
    kernels.mma_tma: (
        warps((128, 64, 64), (32, 32), 8),
        warps((256, 64, 64), (64, 32), 5),
    ),
}


class Run(NamedTuple):
    """A kernel with its tiling, None for the library's own."""

    kernel: Kernel
    tiling: Tiling | None

    def __str__(self) -> str:
        return f"{self.kernel.name} {self.tiling or ''}".replace("×", "x").strip()


# ------------------------------------------------------------------------------------ what is run


def runs(problem: Gemm, chosen: Sequence[Kernel], device: Device) -> list[Run]:
    """The `MOST` runs of ours that are expected to be fastest, the fastest first."""
    fit = [
        Run(kernel, tiling)
        for kernel in chosen
        if problem.arithmetic in kernel.arithmetic and problem.layout in kernel.layouts
        for tiling in dict.fromkeys(tilings(kernel, problem, device))
        if fits(kernel, problem, tiling, device)
    ]
    return sorted(fit, key=lambda run: expected(problem, device, run))[:MOST]


def tilings(kernel: Kernel, problem: Gemm, device: Device) -> Iterator[Tiling]:
    """What a kernel may be run with: its own tiling, those that it is recorded with, thin ones."""
    yield kernel.choose(None, problem, device)
    for tiling in (*kernel.tilings, *THIN.get(kernel, ())):
        if not kernel.splits:
            yield tiling
            continue
        across, down = tiling.grid(problem)
        for fill in FILLS:
            split = min(fill * device.sms // (across * down), tiling.steps(problem))
            if split > 1:
                yield replace(tiling, split=split)


def fits(kernel: Kernel, problem: Gemm, tiling: Tiling, device: Device) -> bool:
    """Whether the GPU can launch it, and its tiles can be copied by pieces of 16 bytes.

    Where they cannot, the kernels for Hopper carry one element after the other.
    """
    if kernel in IN_BOXES and not are_aligned(problem):
        return False
    if kernel is kernels.tma_padded and are_aligned(problem):
        return False  # nothing is to be copied
    try:
        (_, block) = kernel.launch(problem, tiling, device)
        check_block(device, int(np.prod(block)), kernel.shared_bytes(problem, tiling))
        predict(problem, device, kernel, tiling)
    except ValueError:
        return False
    return True


def expected(problem: Gemm, device: Device, run: Run) -> list[float]:
    """Bounds of a run [s], the longest first: where two runs share it, the next one decides.

    The epilogue comes on top of the longest.
    Each launch after the first takes the time between launches besides, and what it takes to hand
    its blocks out, or a round trip to memory.
    """
    further = 0.0
    for one in (*run.kernel.before, *run.kernel.after):
        blocks = int(np.prod(one.launch(problem, run.tiling, device)[0]))
        hand_out = blocks * (device.hand_out_interval or 0.0)
        further += (device.launch_interval or 0.0) + max(hand_out, device.dram_latency or 0.0)
    longest, *others = sorted(predict(problem, device, *run).times.values(), reverse=True)
    longest += epilogue(problem, device, run)
    return [longest + further, *(bound + further for bound in others)]


def epilogue(problem: Gemm, device: Device, run: Run) -> float:
    """Return the part of L1's time that does not grow with k [s]: C's, after all products.

    Blocks with whole SMs to themselves multiply nothing meanwhile. By it a C that threads store
    differs from one that the TMA stores. Sums that another launch adds up have their time already.
    """
    if run.kernel.after:
        return 0.0
    whole = run.tiling.steps(problem) * run.tiling.block[2]
    once, twice = (
        predict(replace(problem, k=k), device, *run).times["l1"] for k in (whole, 2 * whole)
    )
    return max(0.0, 2 * once - twice)


# --------------------------------------------------------------------------------- how it is timed


def measure(name: str, chosen: Sequence[str], rounds: int) -> tuple[Layer, list[str]]:
    """The median times of the runs of a layer, taken in turns, and those that are wrong."""
    problem, device = NETWORKS[name], detect()
    whole, operands = problem.operands(kind="integers"), problem.operands()
    wanted = [Run(kernels.REFERENCE, None),
              *runs(problem, [kernels.get(kernel) for kernel in chosen], device)]  # fmt: skip
    matrices = gpu.Matrices(problem)
    runners = [gpu.Runner(run.kernel, problem, run.tiling, matrices) for run in wanted]

    def by_library(problem: Gemm, operands: Operands) -> np.ndarray:
        with turns.mine():
            return runners[0].compute(problem, operands)

    right = check(problem, by_library, whole).error <= problem.tolerance
    with turns.mine():
        results = [runner.compute(problem, whole) for runner in runners]
        matrices.load(problem, operands)
        times = np.array([[r.sample() for r in runners] for _ in range(gpu.WARM_UP + rounds)])
    # Sums of whole numbers are exact, whatever their order: all results are the same bits.
    wrong = [str(run) for run, c in zip(wanted, results, strict=True)
             if not (right and np.array_equal(c, results[0]))]  # fmt: skip
    library, *ours = (
        Timed(run.kernel.name, run.tiling, float(f"{seconds:.4g}"))
        for run, seconds in zip(wanted, np.median(times[gpu.WARM_UP :], axis=0), strict=True)
    )
    return Layer(name, problem, library, tuple(ours)), wrong


def line(one: Layer) -> str:
    """A layer's row of the table."""
    picked, best = (one.of_library(run) for run in (one.picked, one.best))
    library = one.library.seconds * 1e6
    told = f"{one.name}; {one.problem}; {one.best.kernel} {one.best.tiling}".replace("×", "x")
    return f"{picked:.2f} {best:.2f} {library:8.1f}  {told}"


def provenance(rounds: int, chosen: Sequence[str]) -> dict[str, Any]:
    """Where the numbers come from."""
    device, known = detect(), gpu.provenance()
    return {
        "device": device.name, "device_title": device.title,
        **stamp("date"), "data": DATA, **stamp("python", "numpy", "numba"),
        **{x: known[x] for x in ("driver", "cuda", host.package(), "cupy", "cublas", "l2")},
        "rounds": rounds, "source_sha256": {k: source_hash(kernels.get(k)) for k in chosen},
    }  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    names = ",".join(k.name for k in KERNELS)
    parser.add_argument("out", type=Path)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="timed launches of each")
    parser.add_argument("--kernels", default=names, help="names with commas (default: %(default)s)")
    parser.add_argument("--first", type=int, default=len(NETWORKS), help="only so many shapes")
    asked = parser.parse_args(argv)
    if not gpu_status().works:
        print(f"this needs a GPU: {gpu_status().reason}", file=sys.stderr)
        return 1
    chosen = [kernels.get(name).name for name in asked.kernels.split(",")]
    print("of cuBLAS: picked, best; cuBLAS [us]; layer; product; best")
    spawned, found, wrong = multiprocessing.get_context("spawn"), [], []
    names = list(NETWORKS)[: asked.first]
    for name in names:
        if not runs(NETWORKS[name], [kernels.get(kernel) for kernel in chosen], detect()):
            parser.error(f"none of {asked.kernels} multiplies {NETWORKS[name]}, {name}")
    with spawned.Pool(len(names), turns.share, (spawned.Lock(),)) as pool:
        jobs = [pool.apply_async(measure, (name, chosen, asked.rounds)) for name in names]
        for job in jobs:
            one, not_right = job.get()
            print(line(one), *(f"\n          WRONG: {run}" for run in not_right), flush=True)
            found.append(one)
            wrong += not_right
    rates = [[one.of_library(run) for run in (one.picked, one.best)] for one in found]
    picked, best = map(median, zip(*rates, strict=True))
    print(f"median of {len(found)}: picked {picked:.2f}, best {best:.2f}")
    store.write(asked.out, provenance(asked.rounds, chosen), {"layers": found}, REQUIRED)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

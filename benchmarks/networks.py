"""Twenty products of neural networks, by our kernels on Tensor Cores beside cuBLAS.

    python -m benchmarks.networks [--rounds 20] [--kernels mma_tuned,...] [--first 20]

FP16 operands and results, FP32 sums. Most shapes are skinny, ragged or small, as they are where
networks are used; none is left out where it goes badly. Every kernel runs each tiling that it takes
on the GPU. All take turns, A B C A B C …, with a cold L2, and are checked first. "picked" is what
`gemmlab.predict` expects to be fastest, "best" what was.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from statistics import median
from typing import NamedTuple

import numpy as np

from gemmlab import Gemm, kernels, predict
from gemmlab.backends import gpu
from gemmlab.backends.checking import check
from gemmlab.detection import detect
from gemmlab.driver import gpu_status
from gemmlab.kernels import Kernel
from gemmlab.model.layers import Attention, Convolution, Linear, Recurrent, linear
from gemmlab.model.occupancy import check_block
from gemmlab.recording import parse_kernels
from gemmlab.tiling import Tiling

ROUNDS = 20
FIRST_LAYER = Convolution(32, 3, 224, 224, 64, (7, 7), stride=2, padding=3)
WIDE_LAYER = Convolution(32, 64, 56, 56, 64, (3, 3), padding=1)
NETWORKS = {
    "language model, one word, square projection": linear(4096, 4096, batch=1),
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


class Run(NamedTuple):
    """A kernel with its tiling, None for the library's own."""

    kernel: Kernel
    tiling: Tiling | None

    def __str__(self) -> str:
        return f"{self.kernel.name} {self.tiling or ''}".replace("×", "x").strip()


def runs(problem: Gemm, chosen: Sequence[Kernel]) -> Iterator[Run]:
    """cuBLAS, and each of the kernels that takes the problem with each tiling that fits."""
    yield Run(kernels.REFERENCE, None)
    for kernel in chosen:
        if problem.arithmetic not in kernel.arithmetic or problem.layout not in kernel.layouts:
            continue
        own = kernel.choose(None, problem, detect())
        for tiling in [own] if kernel.splits else dict.fromkeys((own, *kernel.tilings)):
            if fits(kernel, problem, tiling):
                yield Run(kernel, tiling)


def fits(kernel: Kernel, problem: Gemm, tiling: Tiling) -> bool:
    """Whether the GPU can launch it, and the kernel can copy the problem's rows."""
    try:
        (_, block) = kernel.launch(problem, tiling)
        check_block(detect(), int(np.prod(block)), kernel.shared_bytes(problem, tiling))
        predict(problem, detect(), kernel, tiling)
    except ValueError:
        return False
    return True


def measure(
    problem: Gemm, chosen: Sequence[Kernel], rounds: int
) -> tuple[dict[Run, float], list[Run]]:
    """The median time of each run [s], taken in turns, and the runs that are wrong."""
    operands, matrices = problem.operands(), gpu.Matrices(problem)
    wanted = list(runs(problem, chosen))
    runners = [gpu.Runner(run.kernel, problem, run.tiling, matrices) for run in wanted]
    checks = [check(problem, runner.compute, operands) for runner in runners]
    matrices.load(problem, operands)
    times = np.array([[r.sample() for r in runners] for _ in range(gpu.WARM_UP + rounds)])
    seconds = np.median(times[gpu.WARM_UP :], axis=0).tolist()
    wrong = [run for run, c in zip(wanted, checks, strict=True) if c.error > problem.tolerance]
    return dict(zip(wanted, seconds, strict=True)), wrong


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    fastest = kernels.mma_pipelined, kernels.mma_tuned, kernels.mma_tma, kernels.mma_split_k
    names = ",".join(k.name for k in (*fastest, *kernels.HOPPER))
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="timed launches of each")
    parser.add_argument("--kernels", default=names, help="names with commas (default: %(default)s)")
    parser.add_argument("--first", type=int, default=len(NETWORKS), help="only so many shapes")
    arguments = parser.parse_args(argv)
    if not gpu_status().works:
        print(f"this needs a GPU: {gpu_status().reason}", file=sys.stderr)
        return 1
    device, chosen = detect(), parse_kernels(arguments.kernels)
    print(device.title, *(f"{k} {v}" for k, v in gpu.provenance().items()), sep="; ")
    print("of cuBLAS: picked, best; cuBLAS [us]; layer; product; best")
    of_picked, of_best, right = [], [], True
    for name, problem in list(NETWORKS.items())[: arguments.first]:
        found, wrong = measure(problem, chosen, arguments.rounds)
        library, *ours = found
        picked = min(ours, key=lambda run: predict(problem, device, *run).seconds)
        best = min(ours, key=found.__getitem__)
        of_picked.append(found[library] / found[picked])
        of_best.append(found[library] / found[best])
        print(
            f"{of_picked[-1]:.2f} {of_best[-1]:.2f} {found[library] * 1e6:8.1f}  {name}; "
            f"{problem}; {best}".replace("×", "x"),
            flush=True,
        )
        for run in wrong:
            print(f"          WRONG: {run}")
        right = right and not wrong
    print(f"median of {len(of_best)}: picked {median(of_picked):.2f}, best {median(of_best):.2f}")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())

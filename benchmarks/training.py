"""A network that learns digits with our kernels: losses, the times of its launches, PyTorch's way.

    python -m benchmarks.training predict FORECASTS.json h100_sxm
    python -m benchmarks.training measure FORECASTS.json OUT.json [--epochs 12] [--rounds 30]

The first command needs compilers and no GPU, and comes first. "curves": the losses of one training
by each way to multiply, from one seed. "steps": a step's time, in a row of steps, of each of its
launches, in a row of the same, and what was predicted of each before. "splits": products of a step
with k whole and in parts, from a cold L2. "eager": a wide network in PyTorch, by its own products
and by `gemmlab.matmul`. What ships is gemmlab/recorded/<device>/training.json.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.networks import Run
from gemmlab import Device, Gemm, device, kernels, predict_rung
from gemmlab.course.ch13_in_action import dense, digits, in_torch, network, products, step
from gemmlab.here.detection import detect
from gemmlab.here.driver import gpu_status, stamp
from gemmlab.instructions import host
from gemmlab.measure import store
from gemmlab.measure.backends import gpu
from gemmlab.measure.benchmarks import (
    REQUIRED,
    Curve,
    Eager,
    SplitProduct,
    Step,
    StepLaunch,
    Timed,
    Way,
)
from gemmlab.multiplication import matmul

SEED = 0
HIDDEN = 512
SIZES = (64, HIDDEN, HIDDEN, 10)
BATCH, RATE = 64, 0.1
BATCHES = 64, 512
WAYS = (
    Way("FP32", "pipelined", 1.0),
    Way("TF32", "policy_tf32", 1.0),
    Way("FP16", "policy_fp16", 1.0),
    Way("FP16, scaled loss", "policy_fp16", 1024.0),
    Way("TCEC", "tcec_split", 1.0),
)
SLOW = 1e-6  # a rate so small that a thousand steps change nothing that matters
IN_A_ROW = 10  # steps, and 200 of one launch
LAUNCHES = 200
WIDE, WIDE_BATCH, WIDE_STEPS = (64, 4096, 4096, 10), 1024, 30


# --------------------------------------------------------------------------------------- learning


def curve(way: Way, epochs: int) -> Curve:
    """Train once, and test after each epoch."""
    taught, test = digits.load()
    net, product = network.initial(SIZES, SEED), products.by(kernels.get(way.kernel), backend="gpu")
    exact = products.rounded_to("float32")
    losses, right = [], []
    for loss in network.train(
        net, taught, product, batch=BATCH, epochs=epochs, rate=RATE, scale=way.scale, seed=SEED
    ):
        losses.append(float(f"{loss:.4g}"))
        if len(losses) % (len(taught) // BATCH) == 0:
            right.append(round(network.accuracy(net, test, exact), 4))
    return Curve(way, tuple(losses), tuple(right))


# ------------------------------------------------------------------------------------------ times


def on_gpu(of: step.Memory) -> step.Memory:
    """Copy all arrays of a step to the GPU."""
    cuda = host.cuda()

    def copied(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return cuda.to_device(value)
        return tuple(map(copied, value)) if isinstance(value, tuple) else value

    moved = {name: copied(value) for name, value in vars(of).items() if name != "network"}
    net = network.Network(copied(of.network.weights), copied(of.network.biases))
    return step.Memory(network=net, **moved)


def call(one: step.Launch) -> Callable:
    """Compile a launch; return the function that queues it."""
    function = host.cuda().jit(launch_bounds=math.prod(one.block))(one.function)
    launch = function[one.grid, one.block, 0, one.shared_bytes]
    launch(*one.arguments)
    return lambda: launch(*one.arguments)


def seconds(calls: Sequence[Callable], times: int, rounds: int) -> float:
    """Return the median time of all calls, `times` in a row, behind enough work to queue them."""
    cuda = host.cuda()
    begin, end = (cuda.event(timing=True) for _ in range(2))
    found = []
    for _ in range(rounds):
        for _ in range(10 + times * len(calls) // 5):
            gpu.flush(cuda)
        begin.record()
        for _ in range(times):
            for one in calls:
                one()
        end.record()
        end.synchronize()
        found.append(cuda.event_elapsed_time(begin, end) * 1e-3 / times)
    return float(f"{median(found):.4g}")


def a_step(batch: int) -> step.Memory:
    """Give a step of the network its arrays, for the first images."""
    some = digits.load()[0].some(np.arange(batch))
    return step.memory(network.initial(SIZES, SEED), some.pixels, some.targets)


def training_step(batch: int, fused: bool, told: Sequence[float], rounds: int) -> Step:
    """Time a step and each of its launches; told : what was predicted of these [s]."""
    device = detect()
    here = list(step.launches(on_gpu(a_step(batch)), SLOW, fused, device.compute_capability))
    calls = [call(one) for one in here]
    rows = tuple(
        StepLaunch(
            one.name, one.problem, math.prod(one.grid),
            seconds([queue], LAUNCHES, max(5, rounds // 5)), predicted,
        )
        for one, queue, predicted in zip(here, calls, told, strict=True)
    )  # fmt: skip
    return Step(SIZES, batch, fused, seconds(calls, IN_A_ROW, rounds), rows)


def products_of(batch: int, device: Device) -> Iterator[tuple[str, Gemm, list[Run]]]:
    """Yield the products of a step, each with k whole, in parts, and by cuBLAS."""
    for one in step.launches(a_step(batch), SLOW):
        if one.problem is not None:
            suggested = kernels.split_k.suggest(one.problem, device)
            runs = [Run(kernels.split_k, t) for t in (dense.TILING, suggested)]
            yield one.name, one.problem, [*runs, Run(kernels.REFERENCE, None)]


def splits(told: Sequence[Sequence[float]], rounds: int) -> Iterator[SplitProduct]:
    """Yield the times of the products of both steps, from a cold L2."""
    every = [(b, *one) for b in BATCHES for one in products_of(b, detect())]
    for (batch, name, problem, runs), predicted in zip(every, told, strict=True):
        matrices = gpu.Matrices(problem)
        matrices.load(problem, problem.operands())
        runners = [gpu.Runner(run.kernel, problem, run.tiling, matrices) for run in runs]
        samples = np.array([[r.sample() for r in runners] for _ in range(gpu.WARM_UP + rounds)])
        timed = (
            Timed(run.kernel.name, run.tiling, float(f"{s:.4g}"))
            for run, s in zip(runs, np.median(samples[gpu.WARM_UP :], axis=0), strict=True)
        )
        yield SplitProduct(name, batch, problem, *timed, tuple(predicted))


def forecasts(device: Device) -> dict[str, Any]:
    """Predict all that is timed, but what a library does."""
    steps = [
        [forecast.seconds for _, forecast in step.predict_step(a_step(b), SLOW, device, fused)]
        for b in BATCHES
        for fused in (True, False)
    ]
    parts = [
        [predict_rung(problem, device, *run).seconds for run in runs[:2]]
        for batch in BATCHES
        for _, problem, runs in products_of(batch, device)
    ]
    return {"device": device.name, "steps": steps, "splits": parts}


# ---------------------------------------------------------------------------------------- PyTorch


def eager(name: str, multiply: Callable, tf32: bool) -> Eager:
    """Train a wide network in PyTorch: the time of a step, and its gradients beside float64's."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = tf32
    taught, _ = digits.load()
    numbers = np.resize(np.arange(len(taught)), WIDE_BATCH)
    pixels = torch.tensor(taught.pixels[:, numbers], device="cuda")
    labels = torch.tensor(taught.labels[numbers], device="cuda")
    layers = in_torch.parameters(network.initial(WIDE, SEED), "cuda")
    in_torch.loss(layers, pixels, labels, multiply).backward()
    exact = [tuple(x.detach().double().requires_grad_() for x in pair) for pair in layers]
    in_torch.loss(exact, pixels.double(), labels, torch.matmul).backward()
    # By rows, and the median of them: an input of the rectifier that is 0 but for rounding decides
    # about a whole row.
    (found, _), (right, _) = layers[1], exact[1]
    rows = (found.grad.double() - right.grad).norm(dim=1) / right.grad.norm(dim=1)
    error = float(rows.nanmedian())
    marks, losses = [], []
    batches = ((pixels, labels) for _ in range(WIDE_STEPS))
    for loss in in_torch.train(layers, batches, multiply, 0.01):
        marks.append(torch.cuda.Event(enable_timing=True))
        marks[-1].record()
        losses.append(loss)
    torch.cuda.synchronize()
    each = [a.elapsed_time(b) * 1e-3 for a, b in pairwise(marks[5:])]
    return Eager(name, WIDE, WIDE_BATCH, float(f"{median(each):.4g}"), error, float(losses[-1]))


def ways_of_torch() -> Iterator[Eager]:
    """Yield the runs of PyTorch, where it is installed."""
    try:
        import torch
    except ImportError:
        return
    yield eager("PyTorch, FP32", torch.matmul, False)
    yield eager("PyTorch, TF32", torch.matmul, True)
    yield eager("gemmlab.matmul", matmul, False)


# ------------------------------------------------------------------------------------------- main


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=("predict", "measure"))
    parser.add_argument("forecasts", type=Path)
    parser.add_argument("out", help="a device's name, or the file that is written")
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=30)
    asked = parser.parse_args(argv)
    if asked.what == "predict":
        text = json.dumps(forecasts(device(asked.out)), indent=1)
        asked.forecasts.write_text(text + "\n", "utf-8")
        return 0
    if not gpu_status().works:
        print(f"this needs a GPU: {gpu_status().reason}", file=sys.stderr)
        return 1
    told = json.loads(asked.forecasts.read_text("utf-8"))
    if told["device"] != detect().name:
        parser.error(f"{asked.forecasts} is about {told['device']}, and here is {detect().name}")
    measure(told, Path(asked.out), asked.epochs, asked.rounds)
    return 0


def measure(told: dict[str, Any], out: Path, epochs: int, rounds: int) -> None:
    """Time and train, print what comes, and write the record."""
    kinds = [(batch, fused) for batch in BATCHES for fused in (True, False)]
    steps = []
    for (batch, fused), predicted in zip(kinds, told["steps"], strict=True):
        one = training_step(batch, fused, predicted, rounds)
        steps.append(one)
        print(f"batch {batch}, {'fused' if fused else 'apart'}: {one.seconds * 1e6:.1f} us, "
              f"predicted {one.predicted * 1e6:.1f}", flush=True)  # fmt: skip
        for row in one.launches:
            print(f"   {row.name:12} {row.seconds * 1e6:7.2f} {row.predicted * 1e6:7.2f}")
    found: dict[str, list] = {"steps": steps}
    rest = {
        "splits": splits(told["splits"], rounds),
        "eager": ways_of_torch(),
        "curves": (curve(way, epochs) for way in WAYS),
    }
    for table, rows in rest.items():
        found[table] = []
        for row in rows:
            found[table].append(row)
            print(str(row)[:300], flush=True)
    known = gpu.provenance()
    provenance = {
        "device": detect().name, "device_title": detect().title,
        **stamp("date", "python", "numpy", "numba"),
        **{x: known[x] for x in ("driver", "cuda", host.package(), "cupy", "cublas")},
        "rounds": rounds, "seed": SEED, "batch": BATCH, "rate": RATE,
    }  # fmt: skip
    store.write(out, provenance, found, REQUIRED)


if __name__ == "__main__":
    sys.exit(main())

"""One block of a transformer in PyTorch: the time of a training step, and of each of its products.

    python -m benchmarks.block OUT.json [--steps 400]

It learns the characters of a text that comes with Python, `pydoc_data.topics`, in FP32. "steps": of
characters that become vectors by a product, and by a table: the median time, the losses, and what
each kernel took; "products": the time of each product, in a row of the same. What ships is
gemmlab/recorded/<device>/block.json.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from pydoc_data import topics
from statistics import median
from typing import Any

import numpy as np

from gemmlab.course.ch13_in_action import block as models, in_torch
from gemmlab.here.detection import detect
from gemmlab.here.driver import gpu_status, stamp
from gemmlab.measure import store
from gemmlab.measure.benchmarks import REQUIRED, BlockKernel, BlockProduct, BlockStep
from gemmlab.model.layers import Batched

SEED, RATE = 0, 1e-3
WARM_UP, IN_A_ROW, ROUNDS, PROFILED = 20, 50, 7, 5
SAMPLE = 240  # characters that it writes at the end


def text() -> tuple[str, np.ndarray]:
    """Return the characters of the text, each once, and their numbers in the text."""
    written = "".join(topics.topics[name] for name in sorted(topics.topics))
    every = sorted(set(written))
    return "".join(every), np.array([every.index(c) for c in written])


def rounded(seconds: float) -> float:
    return float(f"{seconds:.4g}")


def in_a_row(run: Callable) -> float:
    """Return the median time of one of many calls that are queued together [s]."""
    import torch

    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    found = []
    for _ in range(ROUNDS):
        torch.cuda._sleep(20_000_000)  # cycles: all calls are queued by then
        begin.record()
        for _ in range(IN_A_ROW):
            run()
        end.record()
        end.synchronize()
        found.append(begin.elapsed_time(end) * 1e-3 / IN_A_ROW)
    return rounded(median(found))


def product(of: Batched) -> float:
    """Time one of the products, with operands of their own for each of a batch."""
    import torch

    one = of.gemm
    a, b = (torch.randn(of.count, *shape, device="cuda") for shape in one.shapes[:2])
    left = a if one.layout[0] == "n" else a.transpose(1, 2)
    right = b if one.layout[1] == "n" else b.transpose(1, 2)
    if of.count == 1:
        return in_a_row(lambda: left[0] @ right[0])
    return in_a_row(lambda: left @ right)


class Training:
    """A block with its optimizer and the text that it learns."""

    def __init__(self, block: models.Block, numbers: np.ndarray, looked_up: bool) -> None:
        import torch

        self.block, self.looked_up = block, looked_up
        self.w = in_torch.weights(block, "cuda", SEED)
        self.optimizer = torch.optim.AdamW(self.w.values(), lr=RATE, fused=True)
        self.text = torch.tensor(numbers, device="cuda")
        self.draw = torch.Generator("cuda").manual_seed(SEED)
        self.places = torch.arange(block.context + 1, device="cuda")

    def step(self) -> Any:
        """Learn from a batch of places of the text; return the loss, a tensor."""
        import torch

        last = len(self.text) - len(self.places)
        # Drawn on the GPU: a copy from the host would wait for all that is queued.
        starts = torch.randint(last, (self.block.batch, 1), generator=self.draw, device="cuda")
        some = self.text[starts + self.places]
        self.optimizer.zero_grad()
        scores = in_torch.characters(self.block, self.w, some[:, :-1], self.looked_up)
        loss = torch.nn.functional.cross_entropy(scores, some[:, 1:].reshape(-1))
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def learn(self, steps: int) -> tuple[list[float], float]:
        """Return the losses of so many steps, and the median time of one [s]."""
        import torch

        losses, marks = [], []
        for _ in range(steps):
            losses.append(self.step())
            marks.append(torch.cuda.Event(enable_timing=True))
            marks[-1].record()
        torch.cuda.synchronize()
        each = [a.elapsed_time(b) * 1e-3 for a, b in pairwise(marks[WARM_UP:])]
        return [round(float(x), 4) for x in losses], rounded(median(each))

    def kernels(self) -> list[BlockKernel]:
        """Return what each kernel takes of a step, the longest first."""
        import torch
        from torch.profiler import ProfilerActivity, profile

        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiled:
            for _ in range(PROFILED):
                self.step()
            torch.cuda.synchronize()
        found: dict[str, list[float]] = {}
        for event in profiled.events():
            on_gpu = event.device_type == torch.autograd.DeviceType.CUDA
            if on_gpu and not event.name.startswith("Optimizer."):  # a name for what it launches
                found.setdefault(event.name, []).append(event.time_range.elapsed_us() * 1e-6)
        rows = [
            BlockKernel(name[:160], round(len(each) / PROFILED), rounded(sum(each) / PROFILED))
            for name, each in found.items()
        ]
        return sorted(rows, key=lambda row: -row.seconds)


def written(block: models.Block, w: dict[str, Any], every: str, numbers: np.ndarray) -> str:
    """Let the block go on with a text: each character is drawn by its scores."""
    import torch

    torch.manual_seed(SEED)
    told = list(numbers[: block.context // 2])
    for _ in range(SAMPLE):
        some = torch.tensor([told[-block.context :]], device="cuda")
        with torch.no_grad():
            scores = in_torch.characters(block, w, some)[-1]
        told.append(int(torch.multinomial((scores / 0.7).softmax(-1), 1)))
    return "".join(every[i] for i in told[block.context // 2 :])


def main(argv: Sequence[str] | None = None) -> int:
    import torch

    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--steps", type=int, default=400)
    asked = parser.parse_args(argv)
    if not gpu_status().works:
        print(f"this needs a GPU: {gpu_status().reason}", file=sys.stderr)
        return 1
    torch.backends.cuda.matmul.allow_tf32 = False
    every, numbers = text()
    block = models.Block(len(every))
    steps = []
    for looked_up in (False, True):
        training = Training(block, numbers, looked_up)
        losses, seconds = training.learn(asked.steps)
        sample = written(block, training.w, every, numbers)
        steps.append(BlockStep(looked_up, vars(block), seconds, losses, sample, training.kernels()))
        print(f"{'table' if looked_up else 'product'}: a step takes {seconds * 1e3:.3f} ms, its "
              f"kernels {sum(k.seconds for k in steps[-1].kernels) * 1e3:.3f}; losses {losses[0]} "
              f"… {losses[-1]}\n{sample}")  # fmt: skip
        for kernel in steps[-1].kernels[:12]:
            print(f"   {kernel.seconds * 1e6:8.1f} us {kernel.launches:3} {kernel.name[:90]}")
    rows = []
    for one in models.products(block):
        told, found = models.predict(one, detect()), product(one.product)
        rows.append(BlockProduct(one.name, one.direction, one.product._asdict(), found))
        print(f"{one.name:32} {one.product.count:4} {one.product.gemm!s:28}", end=" ")
        print(f"{found * 1e6:8.1f} us, predicted {told * 1e6:8.1f}", flush=True)
    total = sum(models.predict(one, detect()) for one in models.products(block))
    rest = sum(models.predict(one, detect()) for one in models.passes(block))
    print(f"products {sum(r.seconds for r in rows) * 1e3:.3f} ms, predicted {total * 1e3:.3f};"
          f" all else predicted {rest * 1e3:.3f}")  # fmt: skip
    provenance = {
        "device": detect().name, "device_title": detect().title,
        **stamp("date", "python", "numpy", "driver"),
        "torch": torch.__version__, "cuda": torch.version.cuda, "seed": SEED, "rate": RATE,
    }  # fmt: skip
    store.write(asked.out, provenance, {"steps": steps, "products": rows}, REQUIRED)
    return 0


if __name__ == "__main__":
    sys.exit(main())

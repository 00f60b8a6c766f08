"""What sets of products beside PyTorch share: matrices of its tensors, times of calls, files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from statistics import median
from typing import Any

from benchmarks.forecast.others.timing import origin as timed_at
from benchmarks.forecast.written import origin, parser, write
from gemmlab import Gemm
from gemmlab.compiled.forecast.kernel import Forecast
from gemmlab.instructions import host
from gemmlab.kernels import Kernel
from gemmlab.measure.backends import gpu

SAMPLES, SECONDS = 60, 0.5  # of launches alone; of launches in a row


def launching(
    kernel: Kernel, problem: Gemm, tensors: Iterable[Any], tiling: Any = None
) -> Callable[[], Any]:
    """Return a function that launches a kernel on matrices of PyTorch: A, B and C."""
    matrices = gpu.Matrices.__new__(gpu.Matrices)
    matrices.a, matrices.b, matrices.c = map(array, tensors)
    runner = gpu.Runner(kernel, problem, kernel.choose(tiling, problem), matrices)
    return lambda: runner.call(*runner._arguments(problem))


def array(tensor: Any) -> Any:
    """Return a tensor's memory for who launches here; words where NumPy has no such numbers."""
    import cupy
    import torch

    words = {torch.bfloat16: (torch.int16, "uint16"), torch.float8_e4m3fn: (torch.uint8, "uint8")}
    if tensor.dtype in words:
        of_torch, name = words[tensor.dtype]
        return host.cuda().as_cuda_array(cupy.asarray(tensor.view(of_torch)).view(name))
    return host.cuda().as_cuda_array(tensor)


def samples(call: Callable) -> list[int]:
    """Return durations of calls that find nothing in L2 [ns]."""
    cuda, found = host.cuda(), []
    start, end = (cuda.event(timing=True) for _ in range(2))
    for _ in range(gpu.WARM_UP + SAMPLES):
        gpu.flush(cuda)
        start.record()
        call()
        end.record()
        end.synchronize()
        found.append(round(1e6 * cuda.event_elapsed_time(start, end)))
    return found[gpu.WARM_UP :]


def in_a_row(call: Callable) -> float:
    """Return the time of a call in the last part of many in a row [s]."""
    cuda = host.cuda()
    start, end = (cuda.event(timing=True) for _ in range(2))
    count = max(4, round(SECONDS * 1e9 / median(samples(call)[:5])))
    for _ in range(count):
        call()
    start.record()
    for _ in range(count):
        call()
    end.record()
    end.synchronize()
    return 1e-3 * cuda.event_elapsed_time(start, end) / count


def timed_ways(calls: Mapping[str, Callable]) -> dict[str, dict[str, Any]]:
    """Time each way's call, alone and in a row."""
    return {way: {"ns": samples(call), "sustained": in_a_row(call)} for way, call in calls.items()}


def foretold(found: Forecast) -> dict[str, Any]:
    """Return what a file keeps of a forecast."""
    return {
        "seconds": found.seconds, "by": found.bottleneck, "times": dict(found.times),
        "sustained": found.sustained, "watts": found.load.watts,
    }  # fmt: skip


def of_this_code(said: Mapping[str, Any], *rows: Mapping[str, Any]) -> None:
    """Raise ValueError unless rows are of the case and the source that are said."""
    if not all(said.items() <= row.items() for row in rows):
        raise ValueError(f"{said['case']}: other code was predicted or timed than is here")


def write_file(
    program: str, text: str, device: str,
    predicted: Callable[[str], Iterator[dict[str, Any]]],
    timed: Callable[[], Iterator[dict[str, Any]]],
) -> int:  # fmt: skip
    """Predict or time all cases of a program, as its options say."""
    asked = parser(program, text, device)[0].parse_args()
    before = origin(asked.device) if asked.predict else timed_at()
    found = []
    for row in predicted(asked.device) if asked.predict else timed():
        print(row["case"], row.get("seconds") or {w: (median(x["ns"]) / 1e6, 1e3 * x["sustained"])
              for w, x in row["ways"].items()}, row.get("errors", ""), flush=True)  # fmt: skip
        found.append(row)
    write(asked.predict or asked.time, before, found)
    return 0

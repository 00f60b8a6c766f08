"""GPU matrix multiplication, from its definition to Tensor Cores: predict it, run it, compare.

A tour, in the order of the data:

Gemm(m, n, k, alpha, beta, dtype, accumulate, out_dtype, layout)
    the problem C ← αAB + βC: its operations, bytes, operands, reference and error; `Gemms`: many
device(name), detect()
    a GPU by name, each number with its source; the machine at hand
Tiling(block, thread, warp, stages, split)
    how C is cut into blocks, warps and threads
kernels
    the ladder, one idea a file: naive … pipelined, the CPU's three, and cuBLAS
predict(problem, device, kernel, tiling) -> Prediction
    time, traffic and exact counts, from algebra and the device's numbers; `predict_all` for many,
    and more in `model`
run(kernel, problem, backend) -> Measurement
    times on a GPU or a CPU, counts on the simulated GPU, or a replay of what was recorded
residual(measurement, prediction)
    measured minus predicted, by name
predict_time(kernel, grid, block, *arguments, device="h200") -> Forecast
    how long any Numba-CUDA kernel takes, from its compiled code, without a GPU, and what it waits
    for; `predict_rung` of a rung of the ladders, `predict_library` of cuBLAS, and `count_rung`:
    what the compiled code asks of each part of an SM
matmul(a, b)
    an FP32 product from Tensor Cores, of arrays of NumPy, CuPy, PyTorch or Numba; `matmul_choice`
    says which kernel multiplies, `split(b)` splits an operand once, and in the context
    `fp32_from_fp16()` PyTorch's own products are such
simulate(kernel, grid, block, *arguments) -> Report
    any Numba-CUDA kernel on the simulated GPU: counters, and hazards with their lines
last_report() -> Report
    the same of the last launch kernel[grid, block](x), which returns nothing, as Numba's does
cuda
    what kernels are written with: `numba.cuda` where a GPU works, else its stand-in, `simt.cuda`
instructions, numerics
    Tensor-Core and memory instructions for kernels, and what they compute, to the bit
records, plots, explorers, exercises, guess, changed_lines
    recorded measurements, and what the chapters draw, let you move, ask of you, and compare
grading
    points and reasons for the notebooks of a class; ``gemmlab grade`` on a terminal
teaching
    assignments, syllabuses, answers and exams; ``gemmlab class`` on a terminal
worklog
    chapter 14: kernels of your own for a shape, judged, predicted, kept; and leagues of them

``import gemmlab`` needs NumPy alone; Numba, CUDA, matplotlib and widgets load when they are used.
"""

import importlib
import importlib.util
from typing import Any

from gemmlab.device import Device, device
from gemmlab.problem import Gemm, Gemms
from gemmlab.tiling import Tiling

__version__ = "0.1.0"

# Names that load on first use -> the module that defines them. A module's own name leads to itself.
_LAZY = {
    "Measurement": "measure.measurement",
    "Prediction": "model",
    "Predictions": "model",
    "Report": "simt",
    "changed_lines": "course.text",
    "count_rung": "compiled",
    "cuda": "simt.cuda.choice",
    "detect": "here.detection",
    "exercises": "course.exercises",
    "explorers": "explorers",
    "fp32_from_fp16": "multiplication",
    "grading": "course.grading",
    "guess": "course.guesses",
    "guesses": "course.guesses",
    "instructions": "instructions",
    "kernels": "kernels",
    "last_report": "simt",
    "matmul": "multiplication",
    "matmul_choice": "multiplication",
    "model": "model",
    "numerics": "numerics",
    "plots": "plots",
    "predict": "model",
    "predict_all": "model",
    "predict_library": "compiled",
    "predict_rung": "compiled",
    "predict_time": "compiled",
    "records": "measure.records",
    "residual": "measure.measurement",
    "run": "measure.backends",
    "simulate": "simt",
    "split": "multiplication",
    "teaching": "course.teaching",
    "worklog": "course.worklog",
}

_NEEDS = {"plots": "matplotlib"}  # beside NumPy, to be loaded at all


def _there(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except (ImportError, ValueError):  # of a stand-in, or of what somebody blocks
        return False


_LOADABLE = [name for name in _LAZY if name not in _NEEDS or _there(_NEEDS[name])]

__all__ = ["Device", "Gemm", "Gemms", "Tiling", "device", *_LOADABLE]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'gemmlab' has no attribute {name!r}")
    try:
        home = importlib.import_module(f"{__name__}.{_LAZY[name]}")
    except ModuleNotFoundError as error:  # so that `hasattr` says no
        why = f"gemmlab.{name} needs {error.name}, which is not installed"
        raise AttributeError(why) from error
    found = home if _LAZY[name].split(".")[-1] == name else getattr(home, name)
    if _LAZY[name] == "multiplication":  # whose calls are short: looked up once
        globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)

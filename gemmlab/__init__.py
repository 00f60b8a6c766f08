"""GPU matrix multiplication, from its definition to Tensor Cores: predict it, run it, compare.

``import gemmlab`` needs NumPy alone; Numba, CUDA, matplotlib and widgets load when they are used.
"""

from __future__ import annotations

import importlib
from typing import Any

from gemmlab.device import Device, detect, device
from gemmlab.model import Prediction, predict
from gemmlab.problem import Gemm
from gemmlab.tiling import Tiling

__version__ = "0.1.0"

# Names that load on first use -> the module that defines them; None: the name is a module itself.
_LAZY = {
    "Measurement": "measurement",
    "Report": "simt",
    "cuda": "simt.cuda.stand_in",
    "exercises": None,
    "explorers": None,
    "instructions": None,
    "kernels": None,
    "numerics": None,
    "plots": None,
    "records": None,
    "residual": "measurement",
    "run": "backends",
    "simulate": "simt",
}

__all__ = [
    "Device",
    "Gemm",
    "Measurement",
    "Prediction",
    "Report",
    "Tiling",
    "cuda",
    "detect",
    "device",
    "exercises",
    "explorers",
    "instructions",
    "kernels",
    "model",
    "numerics",
    "plots",
    "predict",
    "records",
    "residual",
    "run",
    "simulate",
]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'gemmlab' has no attribute {name!r}")
    home = _LAZY[name]
    if home is None:
        return importlib.import_module(f"{__name__}.{name}")
    return getattr(importlib.import_module(f"{__name__}.{home}"), name)


def __dir__() -> list[str]:
    return __all__

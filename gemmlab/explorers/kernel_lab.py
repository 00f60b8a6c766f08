"""The kernel lab: run a kernel and lay what was observed over what was predicted."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import ipywidgets as widgets

from gemmlab import backends, kernels, plots
from gemmlab.device import Device, detect, host
from gemmlab.device import device as load_device
from gemmlab.explorers.base import CONTROL, Explorer, Picture, size_slider, sizes_of
from gemmlab.explorers.job import Job, Stopped
from gemmlab.kernels import Kernel
from gemmlab.measurement import Measurement, residual
from gemmlab.model import Prediction, predict
from gemmlab.plots import number, si, style
from gemmlab.problem import Gemm
from gemmlab.tiling import Tiling

LARGEST = 13  # 2^13 = 8192, the largest size that is recorded
CURVE = tuple(2**i for i in range(4, LARGEST + 1))


class KernelLab(Explorer):
    """Choose a kernel, a size and a tile; run it; compare with the prediction.

    kernel : a name of the GPU ladder, its reference, or a CPU kernel, which brings its own list
    n : m = n = k, from 1 to 8192; tile : the block tile's side, None for the kernel's own
    backend : as in `gemmlab.run`
    device : whose records are replayed, and whose roofline predicts where nothing else is known

    Raises TypeError or ValueError for values that no control could show.
    """

    def __init__(
        self,
        kernel: str = "tiled",
        n: int = 128,
        tile: int | None = None,
        backend: str = "auto",
        device: str = "h200",
    ) -> None:
        super().__init__(Picture(plots.figure(9.5, 4.2, 2, wspace=0.62)[0]))
        chosen = kernels.get(kernel)
        family = kernels.CPU if chosen in kernels.CPU else (*kernels.LADDER, kernels.REFERENCE)
        self.device = load_device(device)
        self.history: list[Measurement] = []
        self.job: Job | None = None
        self._shown: tuple[str, ...] | None = None

        side = sizes_of(Gemm(n, n, n), LARGEST)["n"]
        self.kernel = widgets.Dropdown(
            options=[k.name for k in family], value=kernel, description="kernel", **CONTROL
        )
        self.backend = widgets.Dropdown(
            options=("auto", *backends.available(chosen)), description="backend", **CONTROL
        )
        self.backend.value = backends.choose(chosen, backend) if backend != "auto" else backend
        self.n = size_slider("n", side, high=LARGEST)
        self.ragged = widgets.Checkbox(False, description="choose m, n and k one by one", indent=False)

"""The time of the library's products, whose code is not here: tiles, at a rate that was measured.

`gemmlab.model.in_tiles` divides whole tiles by the peak. What the library's own code reaches of the
peak is a fact of the library and the GPU, and the guide's figure 5 measures it: four full waves of
its largest tile, in which nothing is lost but what the code loses.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from gemmlab import records
from gemmlab.device import Device
from gemmlab.device import device as load_device
from gemmlab.kernels import REFERENCE
from gemmlab.measurement import Measurement
from gemmlab.model.in_tiles import InTiles, choose
from gemmlab.model.quantization import quantization
from gemmlab.model.tiles import TILES
from gemmlab.problem import Gemm
from gemmlab.records.series import figures

WAVES = 4  # of figure 5


def full_waves(device: Device, dtype: str, root: str | Path = records.ROOT) -> Measurement:
    """The record of figure 5 in a format: four full waves of the library's largest tile.

    Raises LookupError where there is none, RecordError for a file that was edited.
    """
    for m in figures(device.name, root):
        q = quantization(m.problem, device, TILES[0], per_sm=1)
        wanted = REFERENCE.name, dtype, 1, WAVES
        if (m.kernel, m.problem.dtype, q.use, q.waves) == wanted:
            return m
    raise LookupError(
        f"figure 5 in {dtype} is not recorded on {device.name}; "
        "`gemmlab record --figures 5 --kernels cublas` measures it"
    )


def predict_library(
    problem: Gemm, device: str | Device, root: str | Path = records.ROOT
) -> InTiles:
    """The library's product in the tile and the parts of k that take least, see `choose`.

    Whole tiles take their time at the rate of `full_waves`, which stands in the place of the peak.
    Raises LookupError as that does, and ValueError for an unknown device or format.
    """
    target = load_device(device)
    rate = full_waves(target, problem.dtype, root).flops_per_second
    return choose(problem, replace(target, peak={**target.peak, problem.dtype: rate}))

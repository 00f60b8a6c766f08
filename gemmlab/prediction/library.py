"""The time of the library's products, whose code is not here: tiles, at rates that were measured.

`gemmlab.model.in_tiles` divides whole tiles by the peak. What the library's own code reaches of the
peak is a fact of the library and the GPU, and two of the guide's figures measure it. Figure 5: four
full waves of its largest tile, in which nothing is lost but what the code loses. Figure 2: one
product after the other whose rows begin at other multiples, for which the library has other code.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from gemmlab import records
from gemmlab.device import Device
from gemmlab.device import device as load_device
from gemmlab.kernels import REFERENCE
from gemmlab.measurement import Measurement
from gemmlab.model.alignment import WIDEST, row_alignment
from gemmlab.model.in_tiles import InTiles, choose
from gemmlab.model.quantization import quantization
from gemmlab.model.tiles import TILES
from gemmlab.prediction.time import launch_latency, stream_bandwidth
from gemmlab.problem import Gemm
from gemmlab.records.series import ALIGNMENTS, figures

WAVES = 4  # of figure 5


@dataclass(frozen=True, eq=False)
class LibraryForecast:
    """What the model of tiles says of a launch of the library.

    launch : what a launch takes that does nothing [s], 0 where that was not measured
    """

    in_tiles: InTiles
    launch: float

    @property
    def seconds(self) -> float:
        """Predicted duration [s]."""
        return self.launch + float(self.in_tiles.seconds)

    @property
    def limiter(self) -> str:
        """What limits the speed, in words as in `Prediction`."""
        return str(self.in_tiles.limiter)


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


def efficiency(problem: Gemm, device: Device, root: str | Path = records.ROOT) -> float:
    """The speed that the alignment of a problem's rows leaves, as a part of that of aligned ones.

    The matrix counts whose rows are aligned worst. The speeds are medians of figure 2; where that
    is not recorded, all rows are taken for aligned ones.
    """
    speeds: dict[int, list[float]] = {}
    of_figure_2 = {Gemm(*sizes, dtype=problem.dtype) for sizes in ALIGNMENTS}
    for m in figures(device.name, root):
        if m.kernel == REFERENCE.name and m.problem in of_figure_2:
            speeds.setdefault(aligned_bytes(m.problem), []).append(m.flops_per_second)
    worst = aligned_bytes(problem)
    return median(speeds[worst]) / median(speeds[WIDEST]) if worst in speeds else 1.0


def aligned_bytes(problem: Gemm) -> int:
    """The multiple of bytes at which the rows of all three matrices begin, at most `WIDEST`."""
    return min(WIDEST, *row_alignment(problem))


def predict_library(
    problem: Gemm, device: str | Device, root: str | Path = records.ROOT
) -> LibraryForecast:
    """The library's product in the tile and the parts of k that take least, see `choose`.

    Whole tiles take their time at the rate of `full_waves` times the `efficiency`, in the place of
    the peak; memory moves what streams do.
    Raises LookupError as `full_waves` does, and ValueError for an unknown device or format.
    """
    target = load_device(device)
    rate = full_waves(target, problem.dtype, root).flops_per_second
    reached = rate * efficiency(problem, target, root)
    measured = replace(
        target,
        peak={**target.peak, problem.dtype: reached},
        dram_bandwidth=stream_bandwidth(target),
    )
    return LibraryForecast(choose(problem, measured), launch_latency(target))

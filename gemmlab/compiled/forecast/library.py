"""The library's code is not here: its products are predicted from recorded times of its tiles.

`gemmlab.model.in_tiles` divides whole tiles by the peak. The library's own kernels reach less of
it, need a while to begin, and are others for each format, layout and alignment of rows. All that
is a fact of the library and the GPU, see `gemmlab.compiled.forecast.library_tiles`. Which of its
tiles the library takes is its secret: here it is the one that takes least.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gemmlab import Device, Gemm
from gemmlab import device as load_device
from gemmlab.compiled.forecast.library_tiles import TileTimes, kind, tiles
from gemmlab.compiled.forecast.whole_gpu import launch_latency, stream_bandwidth
from gemmlab.measure import records
from gemmlab.model.in_tiles import adding_up, partial_sums

MOST = 32  # parts of k


@dataclass(frozen=True, eq=False)
class LibraryForecast:
    """A forecast for the library is what its tiles say of a launch.

    times : what each resource needs alone [s]: "math" for the tiles of the SM that has most, and
        "dram" for moving each matrix once
    launch : what a launch takes that does nothing, and what tiles take before and after they
        multiply [s]
    reduction : time to store partial sums and to add them up, 0 where k is not split [s]
    """

    row: TileTimes
    split: int
    times: dict[str, float]
    launch: float
    reduction: float

    @property
    def seconds(self) -> float:
        """Predicted duration [s]."""
        return self.launch + max(self.times.values()) + self.reduction

    @property
    def limiter(self) -> str:
        """The key of `times` that limits the speed."""
        return max(self.times, key=self.times.__getitem__)


def predict_library(
    problem: Gemm, device: str | Device, root: str | Path = records.ROOT
) -> LibraryForecast:
    """Predict the library's product, in the tile and the parts of k that take least.

    Raises LookupError where nothing is recorded of the device or of the problem's kind, and
    ValueError for an unknown device.
    """
    target = load_device(device)
    known = tiles(target.name, root).get(kind(problem))
    if not known:
        raise LookupError(
            f"no tile of the library is recorded on {target.name} for {kind(problem)}; formats are "
            f"{', '.join(sorted({k.dtype for k in tiles(target.name, root)}))}"
        )
    parts = range(1, min(MOST, problem.k) + 1)
    found = [in_tile(problem, target, row, split) for row in known for split in parts]
    return min(found, key=lambda one: one.seconds)


def in_tile(problem: Gemm, device: Device, row: TileTimes, split: int = 1) -> LibraryForecast:
    """Predict the product in one of the library's tiles, with k in `split` parts."""
    waves = row.waves(device.sms, problem.m, problem.n, split)
    launch = launch_latency(device)
    begin = row.begin(device.sms, launch) * (1 if row.stays else waves)
    times = {
        "math": row.step(device.sms) * waves * -(-problem.k // split),
        "dram": problem.dram_bytes / stream_bandwidth(device),
    }
    reduction = adding_up(partial_sums(problem, split), device) if split > 1 else 0.0
    return LibraryForecast(row, split, times, launch + begin, float(np.asarray(reduction)))

"""The library's code is not here: its products are predicted from recorded times of its tiles.

`gemmlab.model.in_tiles` divides whole tiles by the peak. The library's own kernels reach less of
it, need a while to begin, and are others for each format, layout and alignment of rows. All that
is a fact of the library and the GPU, recorded in gemmlab/recorded/<device>/library.json
(`python -m benchmarks.forecast.library` measures it): a row is a kernel of the library that
computed two products which differ in k alone, and the line through the two says what a step along k
takes, and what all the rest does. Which of its tiles the library takes is its secret: here it is
the one that takes least.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gemmlab import Device, Gemm
from gemmlab import device as load_device
from gemmlab.compiled.forecast.whole_gpu import launch_latency, stream_bandwidth
from gemmlab.measure import records, store
from gemmlab.model.alignment import WIDEST, row_alignment
from gemmlab.model.in_tiles import adding_up, partial_sums
from gemmlab.model.quantization import Tile

FILE = "library.json"
COPIED, LOADED = 4, 2  # bytes: at least so much `cp.async` copies, and what is left for loads


class Kind(NamedTuple):
    """Products for which the library has kernels of their own.

    aligned : 16 where the rows of all matrices begin at multiples of 16 bytes, which TMA needs, 4
        where `cp.async` can copy them, else 2
    """

    dtype: str
    layout: str
    aligned: int


def kind(problem: Gemm) -> Kind:
    """Return the kind of a problem; the matrix counts whose rows are aligned worst."""
    worst = min(row_alignment(problem))
    aligned = WIDEST if worst >= WIDEST else COPIED if worst >= COPIED else LOADED
    return Kind(problem.dtype, problem.layout, aligned)


@dataclass(frozen=True)
class TileTimes:
    """A kernel of the library and two products that it computed.

    name : as the driver knows it
    tile : its rows and columns of C, as they are stored here
    stays : its blocks compute one tile after the other, so that one begins while another ends
    m, n, k : of the products, two k; seconds : of each, with a launch, from a cold L2 [s]
    """

    dtype: str
    layout: str
    aligned: int
    name: str
    tile: Tile
    stays: bool
    m: int
    n: int
    k: tuple[int, int]
    seconds: tuple[float, float]

    @property
    def kind(self) -> Kind:
        return Kind(self.dtype, self.layout, self.aligned)

    def waves(self, sms: int, m: int, n: int, split: int = 1) -> int:
        """Tiles that the SM computes which has most of them, one after the other."""
        tiles = -(-m // self.tile[0]) * -(-n // self.tile[1]) * split
        return -(-tiles // sms)

    def step(self, sms: int) -> float:
        """Return what a step of 1 along k takes in a tile [s]."""
        (less, more), (sooner, later) = self.k, self.seconds
        return (later - sooner) / (more - less) / self.waves(sms, self.m, self.n)

    def begin(self, sms: int, launch: float) -> float:
        """Return what a tile takes besides [s], or all that a block computes if it `stays`."""
        waves = self.waves(sms, self.m, self.n)
        rest = self.seconds[0] - launch - self.step(sms) * waves * self.k[0]
        return max(0.0, rest / (1 if self.stays else waves))


def tiles(device: str, root: str | Path = store.ROOT) -> dict[Kind, list[TileTimes]]:
    """Return the tiles that are recorded of a device, by kind.

    Raises LookupError for a device without such a file, and RecordError for one that was edited.
    """
    path = Path(root) / device / FILE
    if not path.exists():
        raise LookupError(
            f"the library's tiles are not recorded on {device}; "
            "`python -m benchmarks.forecast.library` in a clone measures them"
        )
    known: dict[Kind, list[TileTimes]] = {}
    for row in store.read(path, {"rows": TileTimes}).tables["rows"]:
        known.setdefault(row.kind, []).append(row)
    return known


def write(path: Path, provenance: Mapping[str, str], rows: Iterable[TileTimes]) -> None:
    """Write the file of a device."""
    store.write(path, provenance, {"rows": rows})


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

"""The library's code is not here: its products are predicted from recorded times of its tiles.

`gemmlab.model.in_tiles` divides whole tiles by the peak. The library's own kernels reach less of
it, need a while to begin, and are others for each format, layout and alignment of rows. All that
is a fact of the library and the GPU, recorded in gemmlab/recorded/<device>/library.json
(`python -m benchmarks.forecast.library` measures it): a row is a kernel of the library that
computed two products which differ in k alone, and the line through the two says what a step along k
takes, and what all the rest does. Which of its tiles the library takes is its secret: here it is
the one that takes least.

Where rows begin anywhere the library divides k in several ways, by kernels that compute no product
alone. There each product that was timed is kept (library_products.json): the library is taken to do
what it did for one of the three that are most alike, the one by which the product takes least.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gemmlab import Device, Gemm, device as load_device
from gemmlab.compiled.forecast.whole_gpu import launch_latency, stream_bandwidth
from gemmlab.measure import records, store
from gemmlab.model.alignment import WIDEST, row_alignment
from gemmlab.model.in_tiles import adding_up, partial_sums
from gemmlab.model.quantization import Tile

FILE, PRODUCTS = "library.json", "library_products.json"
ALIKE = 3  # recorded products that are looked at
BEGIN = 128  # steps along k that take as long as to begin a tile and to store it
# Both are what is best for a half of the record, and one k of it, by what is recorded of the rest.
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


@dataclass(frozen=True)
class Ways:
    """A kernel of the library, and how it computed a product.

    parts : of k; added : whether a launch of its own adds them up, else blocks do, one by one
    """

    name: str
    tile: Tile
    parts: int
    added: bool


@dataclass(frozen=True)
class Products:
    """Products of a kind and a k that were timed: their rows, columns, ways, and times [ns].

    way : of each, its place in the list of `Ways`
    """

    dtype: str
    layout: str
    aligned: int
    k: int
    m: tuple[int, ...]
    n: tuple[int, ...]
    way: tuple[int, ...]
    ns: tuple[int, ...]


class Computed(NamedTuple):
    """A product that the library computed in a way, with a launch, from a cold L2 [s]."""

    problem: Gemm
    way: Ways
    seconds: float

    @property
    def tile(self) -> Tile:
        return self.way.tile

    @property
    def name(self) -> str:
        return self.way.name

    def work(self, sms: int, problem: Gemm) -> float:
        """Return the steps along k of an SM for a problem that is done in this way.

        A tile of which C has a part alone counts as that part: most of its loads are left out. The
        sizes of the record are a little more than tiles, so that many of its tiles are such.
        """
        rows, columns = self.tile
        area = max(problem.m, rows) * max(problem.n, columns)
        tiles = area / (rows * columns) * self.way.parts
        return max(1.0, tiles / sms) * (-(-problem.k // self.way.parts) + BEGIN)

    def reduction(self, device: Device, problem: Gemm) -> float:
        """Return what a launch takes that adds up the parts of a problem, 0 without it [s]."""
        if not self.way.added:
            return 0.0
        sums = partial_sums(problem, self.way.parts)
        return float(np.asarray(adding_up(sums, device)))


@lru_cache(maxsize=4)
def computed(device: str, root: str | Path = store.ROOT) -> Mapping[Kind, Sequence[Computed]]:
    """Return the products that are recorded one by one, by kind; none where there is no file."""
    path = Path(root) / device / PRODUCTS
    if not path.exists():
        return {}
    tables = store.read(path, {"ways": Ways, "rows": Products}).tables
    known: dict[Kind, list[Computed]] = {}
    for row in tables["rows"]:
        for m, n, way, ns in zip(row.m, row.n, row.way, row.ns, strict=True):
            problem = Gemm(m, n, row.k, dtype=row.dtype, layout=row.layout)
            one = Computed(problem, tables["ways"][way], 1e-9 * ns)
            known.setdefault(Kind(row.dtype, row.layout, row.aligned), []).append(one)
    return known


def most_alike(problem: Gemm, known: Sequence[Computed]) -> list[Computed]:
    """Return those whose sizes are the nearest ones, in octaves."""
    sizes = np.array([(one.problem.m, one.problem.n, one.problem.k) for one in known])
    apart = np.log2(sizes / (problem.m, problem.n, problem.k))
    nearest = np.argsort((apart**2).sum(axis=1), kind="stable")[:ALIKE]
    return [known[i] for i in nearest]


MOST = 32  # parts of k


@dataclass(frozen=True, eq=False)
class LibraryForecast:
    """A forecast for the library is what its tiles say of a launch.

    times : what each resource needs alone [s]: "math" for the tiles of the SM that has most, and
        "dram" for moving each matrix once
    launch : what a launch takes that does nothing, and what tiles take before and after they
        multiply [s]
    reduction : time to store partial sums and to add them up, 0 where no launch of its own does [s]
    """

    row: TileTimes | Computed
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

    Where products of its kind are recorded one by one, in a way that one of the most alike has.

    Raises LookupError where nothing is recorded of the device or of the problem's kind, and
    ValueError for an unknown device.
    """
    target = load_device(device)
    if alike := computed(target.name, root).get(kind(problem)):
        ways = [as_computed(problem, target, one) for one in most_alike(problem, alike)]
        return min(ways, key=lambda one: one.seconds)
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


def as_computed(problem: Gemm, device: Device, one: Computed) -> LibraryForecast:
    """Predict the product in the way in which the library computed another one."""
    launch = launch_latency(device)
    its = max(0.0, one.seconds - launch - one.reduction(device, one.problem))
    times = {
        "math": its * one.work(device.sms, problem) / one.work(device.sms, one.problem),
        "dram": problem.dram_bytes / stream_bandwidth(device),
    }
    added = one.reduction(device, problem)
    return LibraryForecast(one, one.way.parts, times, launch, added)

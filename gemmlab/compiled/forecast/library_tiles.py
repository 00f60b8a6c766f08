"""The tiles in which the library computes, and how long each takes: recorded, with their names.

A row is a kernel of the library that computed two products which differ in k alone. The line
through the two says what a step along k takes, and what all the rest does. They lie in
gemmlab/recorded/<device>/library.json; `python -m benchmarks.forecast.library` measures them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from gemmlab import Gemm
from gemmlab.measure import store
from gemmlab.model.alignment import WIDEST, row_alignment
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
    """The kind of a problem; the matrix counts whose rows are aligned worst."""
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
        """What a step of 1 along k takes in a tile [s]."""
        (less, more), (sooner, later) = self.k, self.seconds
        return (later - sooner) / (more - less) / self.waves(sms, self.m, self.n)

    def begin(self, sms: int, launch: float) -> float:
        """What a tile takes besides [s], or all that a block computes if it `stays`."""
        waves = self.waves(sms, self.m, self.n)
        rest = self.seconds[0] - launch - self.step(sms) * waves * self.k[0]
        return max(0.0, rest / (1 if self.stays else waves))


def tiles(device: str, root: str | Path = store.ROOT) -> dict[Kind, list[TileTimes]]:
    """The tiles that are recorded of a device, by kind.

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

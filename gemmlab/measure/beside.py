"""What `benchmarks/matmul.py` recorded: `matmul` beside the library that owns the arrays."""

from dataclasses import dataclass
from pathlib import Path

from gemmlab.device import RECORDED
from gemmlab.measure import store
from gemmlab.measure.benchmarks import Multiplied, Recorded, read_tables


@dataclass(frozen=True)
class Beside(Multiplied):
    """A product by `matmul` and by PyTorch itself: medians of one run, in seconds of a call.

    how : it came to be measured: chosen, drawn, drawn anew or batch; parts : of k
    single : on an idle GPU, until the stream is done; loop : of one of many calls in a row
    error : by norm; largest : of an element, relative to |A||B|; the same of PyTorch
    """

    how: str
    batch: int
    m: int
    n: int
    k: int
    kernel: str
    parts: int
    single: float
    loop: float
    their_single: float
    their_loop: float
    error: float
    largest: float
    their_error: float
    their_largest: float

    @property
    def ratio(self) -> float:
        """Count how many calls of `matmul` take as long as one of PyTorch's, in loops."""
        return self.their_loop / self.loop

    @property
    def more(self) -> float:
        """The seconds that a call takes more than PyTorch's, alone or in a loop, whichever."""
        return max(self.loop - self.their_loop, self.single - self.their_single)


@dataclass(frozen=True)
class Joules:
    """Seconds and joules of a product of n×n matrices, in loops of a second; of both ways."""

    n: int
    seconds: float
    joules: float
    their_seconds: float
    their_joules: float


@dataclass(frozen=True)
class BesideTorch(Recorded):
    """One run of `benchmarks/matmul.py`."""

    products: tuple[Beside, ...]
    energy: tuple[Joules, ...]


def beside_torch(device: str = RECORDED, root: str | Path = store.ROOT) -> BesideTorch:
    """Read the times of `gemmlab.matmul` beside those of PyTorch on `device`."""
    tables = {"products": Beside, "energy": Joules}
    return read_tables(BesideTorch, device, "matmul_torch.json", root, tables)

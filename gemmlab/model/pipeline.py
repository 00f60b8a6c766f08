"""A pipeline of copies and products: what a ring of tiles in shared memory gains, in cycles.

`step` is one step along k of a thread block that has an SM to itself.
"""

from collections import Counter
from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil

from gemmlab import Device, Gemm, Tiling
from gemmlab.model import Predictable
from gemmlab.model.occupancy import resident_blocks

SINGLE = Gemm(1, 1, 1)  # float32


@dataclass(frozen=True)
class Step:
    """A step of a block that stages its tiles consists of these times [cycle].

    load : L1's wavefronts of the tiles' elements; wait : a round trip to DRAM; store : shared
    memory takes them; multiply : FMA units or Tensor Cores at their peak, or shared loads where
    these take longer
    """

    load: float
    wait: float
    store: float
    multiply: float

    @property
    def idle(self) -> float:
        """Cycles without a product if nothing is fetched ahead."""
        return self.load + self.wait + self.store

    @property
    def idle_share(self) -> float:
        """`idle`, of the whole step."""
        return self.idle / (self.idle + self.multiply)


def step(
    kernel: Predictable, device: Device, tiling: Tiling | None = None, like: Gemm = SINGLE
) -> Step:
    """Give the step of `kernel`: a longer product less a shorter one, so that only steps are left.

    like : a product with the formats and the layout that are meant, of any size
    Parts of a step are taken as if each had its unit to itself; what they overlap is not said.
    """
    tiling = kernel.choose(tiling)
    bm, bn, bk = tiling.block
    short = replace(like, m=bm, n=bn, k=8 * bk)
    works = [kernel.work(replace(short, k=k), tiling) for k in (short.k, 2 * short.k)]
    steps = short.k // bk
    less, more = (Counter(w.counters) | {"l1": w.l1_wavefronts} for w in works)

    def each(name: str) -> float:
        return (more[name] - less[name]) / steps

    loads, stores = each("shared_load_wavefronts"), each("shared_store_wavefronts")
    fmas_a_cycle = device.flop_per_cycle_per_sm[short.dtype] / 2
    return Step(
        load=each("l1") - loads - stores,
        wait=device.dram_latency * device.clock,
        store=stores,
        multiply=max(bm * bn * bk / fmas_a_cycle, loads),
    )


@dataclass(frozen=True)
class Tile:
    """The times of one step's tile [cycle]: its copy begins, has arrived; its product begins, ends.

    A product begins when its tile is there and the product before is done.
    """

    asked: float
    there: float
    begins: float
    done: float


@dataclass(frozen=True)
class Pipeline:
    """The steps along k of one block, with room for the tiles of `stages` steps.

    copy : from asking for a tile until it can be multiplied; multiply : of one tile [cycle]

    With one stage a step copies, then multiplies. With more, the product of a step lets the copy
    of the tile `stages` − 1 steps further begin, and copies on their way do not disturb each other:
    their latency is what counts, as long as no bandwidth is used up.

    >>> Pipeline(steps=8, stages=1, copy=900, multiply=300).period
    1200
    >>> Pipeline(steps=8, stages=4, copy=900, multiply=300).period
    300
    """

    steps: int
    stages: int
    copy: float
    multiply: float

    def __post_init__(self) -> None:
        for name in ("steps", "stages"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}={getattr(self, name)!r}; use a whole number from 1 on")
        for name in ("copy", "multiply"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name}={getattr(self, name)!r}; use a number of cycles above 0")

    @property
    def ahead(self) -> int:
        """Tiles that are on their way while one is multiplied."""
        return self.stages - 1

    @property
    def period(self) -> float:
        """The mean time from one step to the next in a long loop."""
        if not self.ahead:
            return self.copy + self.multiply
        return max(self.multiply, self.copy / self.ahead)

    @property
    def gap(self) -> float:
        """Cycles of a period in which nothing is multiplied."""
        return self.period - self.multiply

    def among(self, blocks: int) -> float:
        """Cycles in which `blocks` such blocks of one SM make a step each.

        While one waits the others multiply: blocks that share an SM are stages for each other.
        """
        return max(blocks * self.multiply, self.period)

    def launch(self, tiles: int, places: int, blocks: int) -> float:
        """Cycles of a launch whose `tiles` of C go in rounds to `places` SMs with `blocks` each."""
        rounds = ceil(tiles / (places * blocks))
        each = self.copy + (self.steps - 1) * self.among(blocks) + blocks * self.multiply
        return rounds * each

    @property
    def cycles(self) -> float:
        """The whole loop: the first copy, a period for each further step, the last product.

        Copies come in turns of `ahead`, so that a loop which ends within a turn that waits is done
        a little earlier.
        """
        return self.copy + (self.steps - 1) * self.period + self.multiply

    def schedule(self) -> list[Tile]:
        """Return the times of each step's tile, step after step."""
        tiles: list[Tile] = []
        for i in range(self.steps):
            done = tiles[-1].done if tiles else 0
            if not self.ahead:
                asked = done
            elif i < self.ahead:
                asked = 0
            else:  # the product that leaves room for it has begun
                asked = tiles[i - self.ahead].begins
            there = asked + self.copy
            begins = max(there, done)
            tiles.append(Tile(asked, there, begins, begins + self.multiply))
        return tiles


def stages_needed(copy: float, multiply: float) -> int:
    """Return the fewest stages with which nobody waits in the loop: (stages − 1) · multiply ≥ copy.

    >>> stages_needed(copy=900, multiply=300)
    4
    """
    return 1 + ceil(copy / multiply)


def pipeline_of(
    kernel: Predictable,
    device: Device,
    tiling: Tiling,
    problem: Gemm,
    multiply: float | None = None,
) -> Pipeline:
    """The loop of one block of `kernel`, with products as fast as can be, or of `multiply` cycles.

    Raises ValueError for a tiling that the kernel does not take.
    """
    one = _step(kernel, device, tiling, problem)
    return Pipeline(tiling.steps(problem), tiling.stages, one.idle, multiply or one.multiply)


@lru_cache(maxsize=64)
def _step(kernel: Predictable, device: Device, tiling: Tiling, problem: Gemm) -> Step:
    return step(kernel, device, tiling, problem)


def blocks_on(kernel: Predictable, device: Device, tiling: Tiling, problem: Gemm) -> int:
    """Blocks that share an SM, by their threads, shared memory and sums in registers.

    The sums are taken to be half of a thread's registers.
    """
    (bm, bn, _), shared = tiling.block, kernel.shared_bytes(problem, tiling)
    return resident_blocks(device, tiling.threads, shared, 2 * (bm * bn // tiling.threads))


def launch_seconds(
    kernel: Predictable,
    device: Device,
    tiling: Tiling,
    problem: Gemm,
    multiply: float | None = None,
) -> float:
    """Return the launch by the pipeline's formula [s]; `multiply` as in `pipeline_of`."""
    across, down = tiling.grid(problem)
    one = pipeline_of(kernel, device, tiling, problem, multiply)
    blocks = blocks_on(kernel, device, tiling, problem)
    return one.launch(across * down, device.sms, blocks) / device.clock

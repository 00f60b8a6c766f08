"""A thread block that has an SM to itself takes one step along k in so many cycles."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from gemmlab.device import Device
from gemmlab.model import Predictable
from gemmlab.problem import Gemm
from gemmlab.tiling import Tiling

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
    """The step of `kernel`: a longer product less a shorter one, so that only steps are left.

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

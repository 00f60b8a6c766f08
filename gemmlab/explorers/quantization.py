"""The quantization explorer: tiles over C, waves over SMs, and the sawtooth over n."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from gemmlab import Device, Gemm, Gemms, Tiling, device as load_device, kernels, plots
from gemmlab.explorers.shared.base import Explorer, Picture, row
from gemmlab.explorers.shared.controls import Number, dropdown, offer
from gemmlab.kernels import Kernel
from gemmlab.measure import backends, records
from gemmlab.measure.measurement import Measurement
from gemmlab.measure.records import series
from gemmlab.model.in_tiles import TILES, in_tiles
from gemmlab.model.quantization import Quantization as Cut, Tile, quantization
from gemmlab.plots import si
from gemmlab.plots.shared import style

SMALL = "small"
GPUS = ("v100", "a100_80gb", "h200")  # whose tiles are predicted; the last one's times are recorded
FORMATS = ("float32", "tf32", "float16")
WAVES = 4.5  # of C that the sawtooth shows, at least


@dataclass(frozen=True)
class Scale:
    """A device has its own scale: tiles, formats, the stops of m, n and k, and what comes first.

    counted : whether kernels run there on the simulator; else times are predicted
    """

    device: Device
    tiles: Sequence[Tile]
    formats: Sequence[str]
    stops: dict[str, Sequence[int]]
    first: dict[str, int]
    counted: bool = False


def scale(name: str) -> Scale:
    """Return the scale of a device; "small" is a GPU of 8 SMs, on which kernels are simulated."""
    if name == SMALL:
        target = replace(load_device("h200"), name=SMALL, title="a small GPU of 8 SMs", sms=8)
        tiles = tuple((side, side) for side in (4, 8, 16))
        stops = {"m": range(8, 65, 4), "n": range(8, 65, 4), "k": range(16, 65, 16)}
        return Scale(target, tiles, FORMATS[:1], stops, {"m": 32, "n": 36, "k": 16}, counted=True)
    target = load_device(name)
    formats = [dtype for dtype in FORMATS if dtype in target.peak]
    stops = {
        "m": range(64, 33793, 64),
        "n": range(64, 12289, 64),
        "k": [2**i for i in range(6, 14)],
    }
    first = {"m": 1408, "n": 3136, "k": 4096}
    return Scale(target, (*TILES[1::-1], *TILES[2:]), formats, stops, first)


@lru_cache(maxsize=512)
def counted(problem: Gemm, side: int) -> int:
    """Products that the threads of *tiled* execute, those that C does not need included.

    Two loads from shared memory for each product of a warp, in tiles of side×side.
    """
    run = backends.run(kernels.tiled, problem, "simulator", tiling=Tiling.square(side))
    return run.counters["shared_load_requests"] // 2 * min(run.tiling.threads, 32)


def share_counted(problem: Gemm, tile: Tile, target: Device) -> float:
    """Return the share of the FMA units' time in which C gets a product that it needs, by counting.

    Tiles are equal, and the SM that has most of them ends last.
    """
    q = quantization(problem, target, tile, per_sm=1)
    of_a_tile = counted(problem, tile[0]) / q.tiles
    return problem.m * problem.n * problem.k / (target.sms * q.waves * of_a_tile)


class Quantization(Explorer):
    """Cut C into tiles, hand them to SMs, and see what that leaves of the peak, over n.

    On "small", a GPU of 8 SMs, *tiled* is simulated over n for each m, k and tile. On others the
    model predicts, and measurements lie on top where they are recorded.

    device : "small", "v100", "a100_80gb" or "h200"; tile : (bm, bn), one of those offered there
    m, n, k, dtype : of the product; the device's own first ones where None

    Raises ValueError for values that no control could show.

    >>> explorer = Quantization()
    >>> print(explorer.message.splitlines()[0])
    C has 32×36 elements: 20 tiles of 8×8, 90.0% of what they cover. 8 SMs take 3 waves.
    """

    def __init__(
        self,
        device: str = SMALL,
        tile: Tile | None = None,
        m: int | None = None,
        n: int | None = None,
        k: int | None = None,
        dtype: str = "float32",
    ) -> None:
        known = (SMALL, *GPUS)
        if device not in known:
            raise ValueError(f"device={device!r} is not offered; use one of {', '.join(known)}")
        here = scale(device)
        tile = tile or here.tiles[1 if here.counted else 0]
        if tuple(tile) not in here.tiles:
            raise ValueError(f"tile={tile!r} is not offered; use one of {here.tiles}")
        tiles, (self.over_c,) = plots.figure(1.9, 3.4, left=0.06, right=0.94, bottom=0.38)
        sms, (self.over_sms,) = plots.figure(2.6, 3.4, left=0.21, right=0.96, bottom=0.38)
        curve, (self.over_n,) = plots.figure(4.0, 3.4, left=0.15, right=0.97, bottom=0.38)
        super().__init__(Picture(tiles, sms, curve))
        titles = {scale(name).device.title: name for name in known}
        self.device = dropdown("GPU", list(titles.items()), device)
        self.tile = dropdown("tile", _names(here.tiles), tuple(tile), "14em")
        self.dtype = dropdown("format", here.formats, dtype, "14em")
        sizes = {**here.first, **{s: v for s, v in (("m", m), ("n", n), ("k", k)) if v}}
        self.sizes = {
            name: Number(name, value, here.stops[name], least=1) for name, value in sizes.items()
        }
        self.n = self.sizes["n"]
        self._heading = style.title(self.over_n, "")
        style.title(self.over_c, "C and its tiles")
        style.title(self.over_sms, "Which SM computes when")
        self._kind: tuple = ()
        self._cover = self._waves = self._curve = self._origin = None
        self.device.observe(self._offer, "value")
        order = (self.n, self.sizes["m"], self.sizes["k"])
        self.arrange(
            [row(self.device, self.tile, self.dtype), row(*order)],
            (self.tile, self.dtype, *order),  # another device draws once it has offered its own
        )

    @property
    def problem(self) -> Gemm:
        return Gemm(**{s: c.value for s, c in self.sizes.items()}, dtype=self.dtype.value)

    def show(self) -> str:
        self.dtype.disabled = len(self.dtype.options) == 1
        here, p, tile = scale(self.device.value), self.problem, self.tile.value
        q = quantization(p, here.device, tile, per_sm=1)
        predicted, observed = self._curves(here, p, tile)
        kind = here.device.name, *predicted, *observed
        if kind != self._kind:
            self._kind, self._curve = kind, None
            heading = self._heading.get_text()
            self.over_n.clear()
            self._heading = style.title(self.over_n, heading)
            self._origin = None
            (self.here,) = self.over_n.plot([], [], "|", color=style.GREY, markersize=500)
        self._cover = plots.cover(self.over_c, q, self._cover)
        self._waves = plots.waves(self.over_sms, q, self._waves)
        self._curve = plots.sawtooth(
            self.over_n, predicted, observed, "share of the peak", artists=self._curve
        )
        self.here.set_data([p.n], [0])
        self._heading.set_text(f"m = {p.m:,}, k = {p.k:,}, {tile[0]}×{tile[1]}, over n")
        source = "simulated · predicted" if here.counted else "predicted"
        if observed and not here.counted:
            source = f"predicted · {self._source}"
        self._origin = plots.provenance(self.over_n, source, self._origin)
        over_c, over_sms = self._cover, self._waves
        self.moving = over_c.image, over_c.grid, *over_c.over, over_c.outline, over_c.name
        self.moving += over_sms.image, over_sms.grid, *self.over_sms.spines.values(), self.here
        self.frames = (
            "the title of C stays",
            (here.device.name, int(q.waves)),
            (*kind, p.m, p.k, p.dtype, tile, self.over_n.get_xlim()),
        )
        return self._said(here, q, p)

    def _curves(self, here: Scale, p: Gemm, tile: Tile) -> tuple[dict, dict]:
        if here.counted:
            ns = np.arange(1, here.stops["n"][-1] + 1)
            curve = quantization(Gemms(p.m, ns, p.k), here.device, tile, per_sm=1).use
            seen = here.stops["n"]
            shares = [share_counted(replace(p, n=n), tile, here.device) for n in seen]
            return {"predicted": (ns, curve)}, {"counted": (seen, shares)}
        ns = _sizes(here, p, tile)
        problems = Gemms(p.m, ns, p.k, dtype=p.dtype)
        whole = quantization(problems, here.device, tile, per_sm=1).use
        bound = in_tiles(problems, here.device, tile, per_sm=1)
        peak = here.device.peak_of(p.dtype)
        curves = {
            "tiles and waves": (ns, whole),
            "and memories": (ns, bound.flops_per_second / peak),
        }
        found = {}
        for name, measured in _recorded(here.device.name, p.m, p.k, p.dtype, tile).items():
            speeds = [m.flops_per_second / peak for m in measured]
            found[name] = [m.problem.n for m in measured], speeds
            self._source = measured[0].source
        return curves, found

    def _said(self, here: Scale, q: Cut, p: Gemm) -> str:
        (bm, bn), sms = q.tile, here.device.sms
        told = [
            f"C has {p.m:,}×{p.n:,} elements: {q.tiles:,} tiles of {bm}×{bn}, {q.useful:.1%} of "
            f"what they cover. {sms} SMs take {style.count(int(q.waves), 'wave')}.",
            f"The last wave has {style.count(int(q.tail), 'tile')}: {q.tail_use:.1%} of the SMs. "
            f"On average {q.wave_use:.1%} work, so that {q.use:.1%} of the peak can be of use.",
        ]
        if here.counted:
            told.append(
                f"Counted: {counted(p, bm):,} products (simulated), of which C needs "
                f"{p.flops // 2:,}: {share_counted(p, q.tile, here.device):.1%} of the peak."
            )
            return "\n".join(told)
        bound = in_tiles(p, here.device, q.tile, per_sm=1)
        told.append(
            f"Predicted: {si(float(bound.seconds), 's')} at least, "
            f"{si(float(bound.flops_per_second), 'FLOP/s')}, limited by {bound.limiter}."
        )
        for measured in _recorded(here.device.name, p.m, p.k, p.dtype, q.tile).values():
            same = (m for m in measured if m.problem.n == p.n)
            told += [f"{m.kernel}, {m.source}: {si(m.seconds, 's')}." for m in same]
        return "\n".join(told)

    def _offer(self, _change: object) -> None:
        here = scale(self.device.value)
        with self.together():
            first = here.tiles[1 if here.counted else 0]
            offer(self.tile, dict(_names(here.tiles)), self.tile.value, first)
            offer(self.dtype, {f: f for f in here.formats}, self.dtype.value)
            for name, control in self.sizes.items():
                control.offer(here.stops[name], here.first[name])


def _names(tiles: Sequence[Tile]) -> list[tuple[str, Tile]]:
    return [(f"{bm}×{bn}", (bm, bn)) for bm, bn in tiles]


def _sizes(here: Scale, p: Gemm, tile: Tile) -> np.ndarray:
    """Return the n of a curve: each end of a tile and the column after it, through some waves."""
    columns = here.device.sms / -(-p.m // tile[0]) * tile[1]  # of a wave
    last = min(here.stops["n"][-1], int(max(WAVES * columns, 4 * tile[1], 1.1 * p.n)))
    ends = np.arange(tile[1], last + 1, tile[1])
    return np.unique([*np.linspace(8, last, 200).astype(int), *ends, *(ends + 1)])


@lru_cache(maxsize=64)
def _recorded(device: str, m: int, k: int, dtype: str, tile: Tile) -> dict[str, list[Measurement]]:
    """Find what is recorded over n, by kernel: cuBLAS, and *pipelined* in tiles of this size."""
    found = {}
    for kernel in (kernels.pipelined, kernels.cublas):
        if device in records.devices() and kernel.default in (None, *_in(tile, kernel)):
            found[kernel.name] = series(kernel, "n", device, dtype=dtype, m=m, k=k)
    return {name: measured for name, measured in found.items() if measured}


def _in(tile: Tile, kernel: Kernel) -> list[Tiling]:
    return [tiling for tiling in kernel.tilings if tiling.block[:2] == tile]

"""The roofline explorer: move a problem along the roof and read what limits it."""

from gemmlab import Gemm, device as load_device, plots
from gemmlab.device import RECORDED, Device, names
from gemmlab.explorers.shared.base import Explorer, Picture, row
from gemmlab.explorers.shared.controls import Size, dropdown, sizes_of
from gemmlab.formats import FORMATS
from gemmlab.model import Prediction, predict
from gemmlab.model.bounds import latency_unknown
from gemmlab.plots import number, si
from gemmlab.plots.shared import style

LARGEST = 14  # 2^14 = 16384


class Roofline(Explorer):
    """An ideal GEMM as a point under the roof of a device.

    device : a name of `gemmlab.device.names()`, or a `Device`, which then joins the list
    dtype : the format of A, B and C; m, n, k : from 1 to 16384

    Raises TypeError or ValueError for values that no control could show.

    >>> explorer = Roofline("v100", m=8192, n=128, k=8192)
    >>> explorer.prediction.limiter
    'DRAM'
    """

    def __init__(
        self,
        device: str | Device = RECORDED,
        dtype: str = "float16",
        m: int = 8192,
        n: int = 128,
        k: int = 8192,
    ) -> None:
        figure, (self.ax,) = plots.figure(7.5, 3.5)
        super().__init__(Picture(figure))
        self._devices = {load_device(name).title: load_device(name) for name in names()}
        chosen = load_device(device)
        self._devices[chosen.title] = chosen
        chosen.peak_of(dtype)
        sizes = sizes_of(Gemm(m, n, k), LARGEST)

        self.device = dropdown("device", list(self._devices), chosen.title)
        self.dtype = dropdown("dtype", _formats(chosen), dtype)
        self.m, self.n, self.k = (Size(x, sizes[x], LARGEST) for x in "mnk")
        self.prediction: Prediction | None = None
        self.roof = self.points = self.origin = None
        self.device.observe(self._offer_formats, "value")
        self.arrange(
            [row(self.device, self.dtype), row(self.m, self.n, self.k)],
            # Another device draws once it has offered its formats.
            watched=(self.dtype, self.m, self.n, self.k),
        )

    def show(self) -> str:
        target = self._devices[self.device.value]
        sizes = {x: getattr(self, x).value for x in "mnk"}
        p = predict(Gemm(**sizes, dtype=self.dtype.value), target)
        self.roof = plots.roofline(
            self.ax, target, self.dtype.value, p.flops_per_second / 2, self.roof
        )
        known = [] if latency_unknown(target, p.seconds) else [p]
        self.points = plots.points(self.ax, known, artists=self.points)
        if self.origin is None:
            self.origin = plots.provenance(self.ax, style.source(p))
        title = style.title(self.ax, f"{p.problem} on {target.title}")
        self.moving = title, *self.points.values()
        self.frames = ((target, self.dtype.value, self.ax.get_ylim()),)
        self.prediction = p
        return describe(p, target)

    def _offer_formats(self, _change: object) -> None:
        """Keep the format where the new device has it; else take the first that it has."""
        formats, had = _formats(self._devices[self.device.value]), self.dtype.value
        with self.together():
            self.dtype.options = formats
            self.dtype.value = had if had in formats else formats[0]


def describe(p: Prediction, target: Device) -> str:
    """Say what limits a problem on a device, with intensity, ops:byte, times and speed."""
    dtype = p.problem.dtype
    peak, ridge = target.peak_of(dtype), target.ops_per_byte(dtype)
    roof = f"{si(peak, 'FLOP/s')} ÷ {si(target.dram_bandwidth, 'B/s')}"
    side = "below" if p.intensity < ridge else "above"
    first = f"{p.problem} on {target.title} is predicted to be limited by {p.limiter}."
    last = (
        f"Predicted: {si(p.seconds, 's')}, {si(p.flops_per_second, 'FLOP/s')}, "
        f"{number(100 * p.flops_per_second / peak)} % of the peak."
    )
    if latency_unknown(target, p.seconds):
        first = (
            f"{p.problem} on {target.title} is so small that latency limits it, and the latency of "
            "this device is not recorded: it has no point."
        )
        last = "Neither is its time: a trip to DRAM takes some hundred nanoseconds on any GPU."
    trip = f"one trip to DRAM takes {si(p.times['latency'], 's')}"
    if not target.dram_latency:
        trip = "how long one trip to DRAM takes is not recorded for this device"
    lines = [
        first,
        f"Its arithmetic intensity of {number(p.intensity)} FLOP/B lies {side} the device's "
        f"ops:byte ratio of {number(ridge)} FLOP/B ({roof}).",
        f"{si(p.flops, 'FLOP')} of math take {si(p.times['math'], 's')}; moving "
        f"{si(p.bytes['dram'], 'B')} takes {si(p.times['dram'], 's')}; {trip}.",
        last,
    ]
    return "\n".join(lines)


def _formats(target: Device) -> list[str]:
    return [dtype for dtype in FORMATS if dtype in target.peak]

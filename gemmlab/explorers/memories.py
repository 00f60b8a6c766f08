"""The explorer of all rooflines: a rung of the ladder, and which memory holds it back."""

from contextlib import suppress

from gemmlab import Gemm, device as load_device, kernels, plots
from gemmlab.device import RECORDED, Device, names
from gemmlab.explorers.shared.base import Explorer, Picture, row
from gemmlab.explorers.shared.controls import Size, dropdown, sizes_of
from gemmlab.kernels import Kernel
from gemmlab.measure import records
from gemmlab.measure.measurement import Measurement
from gemmlab.model import Prediction, predict
from gemmlab.model.limiter import clocks, intensities
from gemmlab.plots import number, si
from gemmlab.plots.roofline import NAMES
from gemmlab.plots.shared import style

LARGEST, LEAST = 14, 5  # n from 2^5 to 2^14
RUNGS = {kernel.name: kernel for kernel in kernels.LADDER}
DTYPE = "float32"  # of the rungs


class Memories(Explorer):
    """A rung of the ladder on m = n = k, under the rooflines of DRAM, L2, L1 and shared memory.

    kernel : a rung, or its name; device : a name of `gemmlab.device.names()`, or a `Device`
    n : from 1 to 16384

    Raises TypeError or ValueError for values that no control could show.

    >>> explorer = Memories("tiled", n=4096)
    >>> explorer.longest
    'shared'
    """

    def __init__(
        self, kernel: Kernel | str = "tiled", device: str | Device = RECORDED, n: int = 4096
    ) -> None:
        name = getattr(kernel, "name", kernel)
        if name not in RUNGS:
            raise ValueError(f"kernel={name!r} is no rung of the ladder; use {', '.join(RUNGS)}")
        figure, (self.ax,) = plots.figure(7.5, 3.5)
        super().__init__(Picture(figure))
        self._devices = {load_device(known).title: load_device(known) for known in names()}
        chosen = load_device(device)
        self._devices[chosen.title] = chosen

        self.kernel = dropdown("kernel", list(RUNGS), name)
        self.device = dropdown("device", list(self._devices), chosen.title)
        self.n = Size("n", sizes_of(Gemm(1, n, 1), LARGEST)["n"], LARGEST, LEAST)
        self.prediction: Prediction | None = None
        self.measurement: Measurement | None = None
        self.longest = ""  # a key of `clocks`
        self.roof = self.marks = self.origin = None
        controls = self.kernel, self.device, self.n
        self.arrange([row(self.kernel, self.device), self.n], watched=controls)

    def show(self) -> str:
        target, kernel, n = self._devices[self.device.value], RUNGS[self.kernel.value], self.n.value
        p = self.prediction = predict(Gemm(n, n, n), target, kernel)
        self.measurement = None
        with suppress(LookupError):
            self.measurement = records.find(kernel, p.problem, device=target.name)
        found = clocks(p, target)
        self.longest = max(found, key=found.__getitem__)
        bound = p.flops / found[self.longest]
        self.roof = plots.roofline(
            self.ax, target, DTYPE, bound / 2, self.roof, levels=("dram", "l2", "shared")
        )
        self.marks = plots.memories(self.ax, p, target, self.measurement, self.marks)
        plots.make_room(self.ax, self.roof, self.marks)
        source = style.source(self.measurement or p)
        if self.origin is None:
            self.origin = plots.provenance(self.ax, source)
        self.origin.set_text(source)
        title = style.title(self.ax, f"{kernel.name}, n = {n}, on {target.title}")
        slopes = self.roof.slope_labels.values()
        drawn = *slopes, self.marks.joint, *self.marks.marks.values(), *self.marks.labels.values()
        self.moving = title, self.origin, *drawn
        self.frames = ((target, self.ax.get_ylim()),)
        return describe(p, target, self.measurement)


def describe(p: Prediction, target: Device, measurement: Measurement | None) -> str:
    """Return the clocks of a kernel from the longest to the shortest, and the recorded time."""
    found, intensity = clocks(p, target), intensities(p)
    order = sorted(found, key=found.__getitem__, reverse=True)
    longest = found[order[0]]
    lines = [
        f"{p.kernel} at n = {p.problem.n} on {target.title}: {_named(order[0])} is the longest "
        f"clock, {si(longest, 's')}, which allows {si(p.flops / longest, 'FLOP/s')}."
    ]
    lines += [
        f"{style.sentence(_named(clock))}: {si(p.flops, 'FLOP')} in {si(found[clock], 's')}."
        if clock == "math"
        else f"{style.sentence(_named(clock))}: {number(intensity[clock])} FLOP/B, "
        f"{si(found[clock], 's')}."
        for clock in order[1:]
    ]
    if measurement is None:
        return "\n".join([*lines, "Nothing is recorded of it at this size."])
    times = measurement.seconds / longest
    told = f"Recorded: {si(measurement.seconds, 's')}, {times:.2f} times the longest clock."
    return "\n".join([*lines, told])


def _named(clock: str) -> str:
    return "arithmetic" if clock == "math" else NAMES[clock]

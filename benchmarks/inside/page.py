"""The picture and the tables of timelines measured inside kernels, for book/predictions.md."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from benchmarks import ROOT
from benchmarks.inside.phases import padded, phases
from benchmarks.inside.written import SINCE, read
from benchmarks.page_tables import table
from gemmlab import plots
from gemmlab.measure.inside import Inside, MarkedLaunch, inside
from gemmlab.plots.inside import inside as draw
from gemmlab.plots.shared import style

PICTURE = ROOT / "book" / "images" / "inside.png"
FAMILIES = {
    "pipelined": "FP32 units",
    "mma_pipelined": "Tensor Cores by mma.sync",
    "wgmma_pipelined": "Tensor Cores by wgmma",
    "warp_specialised": "wgmma, tiles by the TMA",
    "tcec_registers": "error-corrected, FP32 in three products",
}
SHOWN = {
    "gap": "between blocks",
    "start": "until the first tile",
    "products": "products",
    "store": "store",
    "whole": "whole",
}


Cycles = dict[tuple[int, str], float]


def with_products(found: Cycles, turns: int) -> Cycles:
    """Add the products of each round of blocks: all turns, and the last one."""
    rounds = {number for number, _ in found}
    return found | {(n, "products"): turns * found[n, "turn"] + found[n, "last"] for n in rounds}


def turns(of: Inside, launch: MarkedLaunch) -> int:
    """Count the turns that lie between the first tile of a tile of C and the last one."""
    marks = max(len(one.simulated) for one in of.of(launch.kernel))
    return (marks - 1) // launch.rounds - 3


def measured(of: Inside, launch: MarkedLaunch) -> Cycles:
    """Return the cycles of a kernel's phases by round and phase, medians over SMs and launches."""
    found = {(p.round, p.phase): p.measured[1] for p in of.phases if p.kernel == launch.kernel}
    return with_products(found, turns(of, launch))


def simulated(of: Inside, launch: MarkedLaunch) -> Cycles:
    """Return the same as they were simulated before."""
    found = {(p.round, p.phase): p.simulated for p in of.phases if p.kernel == launch.kernel}
    return with_products(found, turns(of, launch))


def since(of: Inside, launch: MarkedLaunch) -> tuple[Cycles, float] | None:
    """Return the same as later code simulates it, and the launch's seconds without marks, if so."""
    if not SINCE.exists():
        return None
    (row,) = (row for row in read(SINCE) if row["kernel"] == launch.kernel)
    found = phases(padded(row["clocks"]), launch.rounds, launch.resident)
    return with_products(found, turns(of, launch)), row["bare_seconds"]


def percent(part: float) -> str:
    """Return a part with a sign and without digits behind the point."""
    return f"{100 * part:+.0f}%".replace("-", "−")


def errors() -> str:
    """Tell for each kernel the error of each phase, of both rounds; as predicted, and since."""
    of = inside()
    rows = []
    for launch in of.launches:
        seen, later = measured(of, launch), since(of, launch)
        made = {f"`{launch.kernel}`": simulated(of, launch)}
        made |= {"since": later[0]} if later else {}
        for name, cycles in made.items():
            cells = [
                ", ".join(
                    percent(cycles[n, phase] / seen[n, phase] - 1)
                    for n in (0, 1)
                    if (n, phase) in seen
                )
                for phase in SHOWN
            ]
            rows.append([name, *cells])
    return table(["kernel", *SHOWN.values()], rows)


def all_cycles() -> str:
    """Tell the cycles of all phases."""
    of, columns = inside(), ["measured", "predicted"] + ["since"] * SINCE.exists()
    rows = []
    for launch in of.launches:
        seen, later = measured(of, launch), since(of, launch)
        made = [seen, simulated(of, launch), *(later[:1] if later else ())]
        rows += [
            [f"`{launch.kernel}`", number + 1, name,
             *(f"{cycles[number, phase]:,.0f}" for cycles in made)]
            for number in (0, 1)
            for phase, name in SHOWN.items()
            if (number, phase) in seen
        ]  # fmt: skip
    text = table(["kernel", "round", "phase", *columns], rows)
    return f"<details><summary>all cycles</summary>\n\n{text}\n\n</details>"


def launches() -> str:
    """Tell what the launches took, what the marks cost, and the clock of the SMs."""
    of = inside()
    rows = []
    for one in of.launches:
        later = since(of, one)
        made = [one.predicted_bare_seconds, *(later[1:] if later else ())]
        rows.append(
            [f"`{one.kernel}` {one.problem}", us(one.bare_seconds),
             *(percent(seconds / one.bare_seconds - 1) for seconds in made),
             us(one.marked_seconds), percent(one.marked_seconds / one.bare_seconds - 1),
             f"{one.clock / 1e9:.2f} GHz"]
        )  # fmt: skip
    errors = ["error"] + ["since"] * SINCE.exists()
    return table(["launch", "without marks", *errors, "with marks", "their cost", "clock"], rows)


def us(seconds: float) -> str:
    """Return a time in microseconds."""
    return f"{1e6 * seconds:.1f} µs"


def picture(names: Sequence[str] = tuple(FAMILIES)) -> Figure:
    """Draw the warps of one SM for each kernel: measured above simulated."""
    of = inside()
    figure, axes = plots.figure(
        9, 1.75 * len(names), rows=len(names), right=0.985, left=0.1, top=0.965, bottom=0.095,
        hspace=0.72,
    )  # fmt: skip
    for ax, name in zip(axes, names, strict=True):
        launch = of.launch(name)
        draw(ax, of.of(name), launch.resident, launch.rounds, legend=ax is axes[-1])
        ax.set_title(
            f"{name}: {FAMILIES[name]}", loc="right", fontsize=style.LABEL, color=style.INK
        )
        if ax is not axes[-1]:
            ax.set_xlabel("")
    plots.describe(figure, f"{told(of)} Source: {of.source}.")
    return figure


def told(of: Inside) -> str:
    """Say in words what the picture shows."""
    parts = []
    for launch in of.launches:
        warps = of.of(launch.kernel)
        measured, made = (
            max(max(getattr(one, f)) for one in warps) for f in ("median", "simulated")
        )
        parts.append(f"{launch.kernel} {measured:,} and {made:,}")
    return (
        "Cycles of one SM for each kernel: what its warps did as its clock said it, above what was "
        f"simulated. The last warp has stored after, measured and simulated: {'; '.join(parts)}."
    )


TABLES = {
    "inside": lambda: f"![{plots.alt(picture())}](images/{PICTURE.name})",
    "inside-launches": launches,
    "inside-phases": errors,
    "inside-cycles": all_cycles,
}

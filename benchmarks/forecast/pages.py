"""Write the tables of book/predictions.md from what was predicted and what was measured.

    python -m benchmarks.forecast.pages

They stand between the marks of `benchmarks.page_tables`; each has a part for every device of
which something is written down. All launches together are one sentence and one picture, above them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from statistics import median
from types import ModuleType
from typing import Any

from benchmarks import ROOT, clusters, epilogues, fp8, held_out, held_out_families
from benchmarks.forecast import (
    compiled as other_compilers,
    every_set,
    public as public_kernels,
    rows_anywhere as anywhere,
    sawtooth,
)
from benchmarks.forecast.errors import (
    LARGE,
    Compared,
    by_family,
    circumstances,
    compared,
    picks,
    worst,
)
from benchmarks.forecast.ladder import measurements
from benchmarks.forecast.others.case import CLASSES
from benchmarks.forecast.others.sets import FILES, entry
from benchmarks.forecast.others.table import Beside, beside
from benchmarks.forecast.published import (
    FIRST,
    SINCE as PUBLISHED_SINCE,
    Published,
    errors,
    predictions as of_published,
    published,
    sources,
)
from benchmarks.forecast.written import RECORDED, Written, first_and_since, stored
from benchmarks.inside import page as inside
from benchmarks.page_tables import fold, mean, ms, percent, table, write
from benchmarks.power import blind as power_sets, page as of_power
from gemmlab import kernels, plots
from gemmlab.device import device
from gemmlab.plots import style
from gemmlab.plots.shared.figures import DENSITY, Figure, png

PAGE = ROOT / "book" / "predictions.md"
PICTURE = ROOT / "book" / "images" / "predictions.png"
DEVICES = sorted((path.name for path in RECORDED.iterdir()), reverse=True)
WORST = 3  # of each family and size
LEFT_OUT = "Not measured yet."


def each_device(part: Callable[[str], str]) -> str:
    """What `part` says of each device, under its name."""
    return "\n\n".join(f"**{device(name).title}**\n\n{part(name)}" for name in DEVICES)


# ---------------------------------------------------------------------------- all of them together

NEAR = (0.10, 0.25)  # errors that the headline counts
HELD_OUT = (*held_out.SETS, *held_out_families.SETS)
# group -> its colour and mark; the kernels of a group are those of these ladders
GROUPS = {
    "FP32 kernels": (style.BLUE, "o"),
    "kernels on Tensor Cores, and split-K": (style.GREEN, "^"),
    "cuBLAS": (style.ORANGE, "s"),
    "kernels that are no GEMM": (style.VERMILION, "D"),
}


@cache
def blindly() -> dict[str, list[tuple[float, float]]]:
    """Group -> (predicted, measured) [s] of each launch that was predicted before it was timed."""
    found: dict[str, list[tuple[float, float]]] = {group: [] for group in GROUPS}
    simt, tensor_cores, library, others_ = found.values()
    for name in DEVICES:
        for one in (case for which in HELD_OUT for case in cases(which, name)):
            kernel = kernels.get(one.kernel)
            group = (
                library if kernel.library else simt if kernel in kernels.LADDER else tensor_cores
            )
            group.append((one.predicted, one.measured))
        for file in FILES.values():
            timings = stored(name, f"{file}_timed")
            for one in beside(stored(name, f"{file}_predicted"), timings) if timings else ():
                others_.append((one.predicted, one.measured))
    for which in power_sets.SETS:
        for one in of_power.products(of_power.written(which)[0], which):
            group = simt if kernels.get(one.kernel) in kernels.LADDER else tensor_cores
            group.append(one.alone[::-1])
    for which in clusters.SETS:
        _, drawn = clusters.parts(clusters.products(which)[0], which)
        tensor_cores += [one.alone[::-1] for one in drawn]
    tensor_cores += [*epilogues.pairs(), *fp8.pairs()]
    for which in anywhere.SETS:
        library += anywhere.pairs(which, anywhere.written(which)[0])
    return found


def headline() -> str:
    """How far off all predictions are that were made before their launch was timed, in one line."""
    errors = [abs(p / m - 1) for group in blindly().values() for p, m in group]
    near = [sum(e <= limit for e in errors) / len(errors) for limit in NEAR]
    return (
        f"**{len(errors):,} launches on two GPUs were predicted before they were measured: half of "
        f"them are within {median(errors):.1%}**, {near[0]:.0%} are within {NEAR[0]:.0%}, and "
        f"{near[1]:.0%} within a quarter.\n\n"
        f"![{plots.alt(picture())}]({PICTURE.relative_to(PAGE.parent).as_posix()})"
    )


def picture() -> Figure:
    """Predicted ÷ measured over the measured time, a point for each of these launches."""
    figure, (ax,) = plots.figure(9, 4.4, right=0.98, bottom=0.2)
    style.prepare(ax, log="xy")
    ax.axhspan(1 / (1 + NEAR[0]), 1 + NEAR[0], color=style.GRID, zorder=0, linewidth=0)
    ax.axhline(1, color=style.INK, linewidth=1)
    told = []
    for (group, pairs), (colour, marker) in zip(blindly().items(), GROUPS.values(), strict=True):
        times, ratios = [1e3 * m for _, m in pairs], [p / m for p, m in pairs]
        ax.plot(
            times, ratios, marker, color=colour, markersize=4, alpha=0.7, markeredgewidth=0,
            label=f"{group} ({len(pairs)})",
        )  # fmt: skip
        middle = median(abs(ratio - 1) for ratio in ratios)
        told.append(f"{group}: {len(pairs)}, half of them within {middle:.1%}")
    ax.set_yticks([0.05, 0.1, 0.2, 0.5, 1, 2])
    ax.minorticks_off()
    style.plain_axis(ax.xaxis, "measured time", "ms")
    style.plain_axis(ax.yaxis, "predicted ÷ measured")
    ax.legend(
        loc="upper center", bbox_to_anchor=(0.48, -0.13), frameon=False, fontsize=style.NOTE,
        ncols=4, columnspacing=1.2, handletextpad=0.2,
    )  # fmt: skip
    style.title(ax, "Predictions that were written down first")
    names = " and ".join(device(name).title for name in DEVICES)
    plots.provenance(ax, f"recorded on {names}; grey: within {NEAR[0]:.0%}")
    plots.describe(ax, f"Predicted over measured time of each launch: {'; '.join(told)}.")
    return figure


# ------------------------------------------------------------------------- kernels that are no GEMM


def others(name: str) -> str:
    """Each set's kernels, and the error of each class; first as they were predicted first."""
    told = []
    for file in FILES.values():
        timings = stored(name, f"{file}_timed")
        told += [
            f"{dates(predictions, timings)}\n\n{kernel_by_kernel(beside(predictions, timings))}"
            for predictions in first_and_since(name, f"{file}_predicted")
        ]
    return "\n\n".join(told)


def compiled(name: str) -> str:
    """The kernels of other compilers one by one, as they were predicted first and since."""
    return one_by_one(name, "compiled", other_compilers.CASES, lambda case: case.compiler)


def public(name: str) -> str:
    """The kernels that others published, likewise."""
    of = public_kernels.about()
    return one_by_one(name, "public", public_kernels.CASES, lambda c: of[c.name]["repository"])


def one_by_one(name: str, file: str, cases: Mapping[str, Any], group: Callable) -> str:
    """Kernels from cubins, first as they were predicted first; `group` says of whom each is."""
    timings = stored(name, f"{file}_timed")
    told = (
        f"{dates(predictions, timings)}\n\n{from_cubins(predictions, timings, cases, group)}"
        for predictions in first_and_since(name, f"{file}_predicted")
    )
    return "\n\n".join(told) or LEFT_OUT


def from_cubins(
    predictions: Written, timings: Written | None, cases: Mapping[str, Any], group: Callable
) -> str:
    """A row for each kernel; ValueError for one whose code is another, or that was wrong."""
    timed = {row["kernel"]: row for row in timings.rows} if timings else {}
    cells, errors = [], {}
    for row in predictions.rows:
        case, found = cases[row["kernel"]], timed.get(row["kernel"])
        seconds = error = None
        if found:
            if found["cubin_sha256"] != row["cubin_sha256"] or not found["right"]:
                raise ValueError(f"{case.name}: other code was timed, or its result is wrong")
            seconds = median(found["ns"]) * 1e-9
            error = row["seconds"] / seconds - 1
            errors.setdefault(group(case), []).append(error)
        cells.append(
            [f"`{case.name}`", group(case), ms(seconds), ms(row["seconds"]),
             "" if error is None else percent(error), row["by"], case.idea]
        )  # fmt: skip
    said = [f"{len(found)} kernels of {name}: {mean(found)}" for name, found in errors.items()]
    head = ["kernel", "of", "measured", "predicted", "error", "by", "what it does"]
    every = [e for found in errors.values() for e in found]
    half = f"{percent(median(map(abs, every))).lstrip('+')} in the median" if every else ""
    total = f"{mean(every)} off on average, {half}" if every else f"{len(cells)} kernels"
    return fold("; ".join([total, *said]), table(head, cells))


def kernel_by_kernel(rows: list[Beside]) -> str:
    """A row for each kernel, and one for each class that was timed."""
    cells, said = [], []
    for kind in CLASSES:
        members = [one for one in rows if one.case.kind == kind]
        for one in members:
            errors = (one.error, one.memory_error) if one.measured else ()
            cells.append(
                [f"`{entry(one.case)}`", ms(one.measured), ms(one.predicted),
                 *([percent(e) for e in errors] or ["", ""]), one.by, one.case.idea.rstrip(".")]
            )  # fmt: skip
        if members and all(one.measured for one in members):
            means = [mean(getattr(o, of) for o in members) for of in ("error", "memory_error")]
            title = f"**{len(members)} kernels {kind}**"
            said.append(f"{len(members)} kernels {kind}: {means[0]} off on average")
            cells.append(
                [title, "", "", *(f"**{m}**" for m in means), "", "mean of absolute errors"]
            )
    head = ["kernel", "measured", "predicted", "error", "of memory alone", "by", "what it does"]
    return fold("; ".join(said) or "each kernel", table(head, cells))


def one_set(predictions: list[Written], timings: Written | None, rows: tuple[str, str]) -> str:
    """When a set was predicted and timed, a sentence on it, and its table."""
    return "\n\n".join([*(dates(made, timings) for made in predictions), fold(*rows)])


def power() -> str:
    """Products at the limit of power and beyond L2, alone and in a row, a set after the other."""
    return "\n\n".join(
        one_set(of_power.written(which), of_power.timings(which), of_power.rows(which))
        for which in power_sets.SETS
    )


def one_pair(of: ModuleType) -> str:
    """A set of one file of predictions, and its timings."""
    predictions, timings = of.written()
    return one_set([predictions], timings, of.rows())


def of_clusters(which: str) -> str:
    """Blocks that share what they copy: a set of one file of predictions, and its timings."""
    predictions, timings = clusters.written(which)
    return one_set([predictions], timings, clusters.rows(which))


def rows_anywhere() -> str:
    """CuBLAS's products in FP16 whose rows begin anywhere, a set after the other."""
    return "\n\n".join(
        one_set(anywhere.written(which), anywhere.timings(which), anywhere.rows(which))
        for which in anywhere.SETS
    )


def dates(predictions: Written, timings: Written | None) -> str:
    """When what was written down."""
    if timings is None:
        return f"{made(predictions)}; not measured yet."
    return f"{made(predictions)}; timed on {moment(timings.provenance['date'])}."


def made(predictions: Written) -> str:
    """When, by what code and from which facts something is predicted."""
    said = predictions.provenance
    return (
        f"Predicted on {moment(said['date'])} by code {said['predictor_sha256'][:12]} with facts "
        f"{said['facts_sha256'][:12]}, numba-cuda {said['numba_cuda']}, ptxas {said['ptxas']}"
    )


def moment(date: str) -> str:
    """A date and its time to the minute."""
    return date[:16].replace("T", ", ") + " UTC"


# ------------------------------------------------------------------------------- ladder and cuBLAS


def cases(which: str, name: str) -> list[Compared]:
    """The held-out set, or what was looked at, as it was predicted first."""
    predictions = stored(name, f"{which}_predicted")
    return compared(predictions, measurements(which, name)) if predictions else []


def blind(name: str) -> str:
    """The last held-out set that is measured on a device, else the first."""
    return next((s for s in reversed(held_out.SETS) if cases(s, name)), "held_out")


def families(which: str, name: str) -> str:
    """The error of each family, of the prediction and of the bound."""
    measured = measurements(which, name)
    texts = [made(written) for written in first_and_since(name, f"{which}_predicted")]
    if not texts:
        return "Not predicted yet."
    if not measured:
        return "\n\n".join(f"{text}; not measured yet." for text in texts)
    days = sorted(m.provenance["date"] for m in measured)
    span = f"measured from {moment(days[0])} to {moment(days[-1])}."
    return "\n\n".join(
        f"{text}; {span}\n\n{family_by_family(compared(written, measured))}"
        for text, written in zip(texts, first_and_since(name, f"{which}_predicted"), strict=True)
    )


def family_by_family(found: list[Compared]) -> str:
    """A row for each family, large products first."""
    rows = [
        [
            family,
            f"n {'≥' if large else '<'} {LARGE}".replace(" ", "\N{NO-BREAK SPACE}"),
            len(members),
            f"**{mean(c.error for c in members)}**",
            mean(c.bound_error for c in members),
            percent(worst(members, 1)[0].error),
        ]
        for (family, large), members in by_family(found).items()
    ]
    means = mean(c.error for c in found), mean(c.bound_error for c in found)
    return fold(
        f"{len(found)} launches: {means[0]} off on average, their bounds {means[1]}; by family",
        table(["kernels", "size", "measured", "error", "of the bound", "largest error"], rows),
    )


def worst_cases(name: str) -> str:
    """The largest errors of the last held-out set, of each family and size."""
    return worst_of(cases(blind(name), name), name)


def worst_of(found: list[Compared], name: str) -> str:
    """A row for each of the largest errors of each family and size."""
    if not found:
        return LEFT_OUT
    largest = worst(found, 1)[0].error
    rows = [
        [str(c), ms(c.measured), ms(c.predicted), percent(c.error), percent(c.bound_error), c.by,
         circumstances(c, device(name).sms)]
        for members in by_family(found).values()
        for c in worst(members, WORST)
    ]  # fmt: skip
    head = ["case", "measured", "predicted", "error", "of the bound", "by", "what is unusual"]
    return fold(f"the {len(rows)} largest errors, up to {percent(largest)}", table(head, rows))


def picked(name: str) -> str:
    """How often the tiling that is predicted to be the fastest is the fastest, in that set."""
    found = cases(blind(name), name)
    if not found:
        return LEFT_OUT
    rows = []
    for title, by in (("the compiled code", "predicted"), ("the bound", "bound")):
        all_picks = picks(found, by)
        right = sum(pick.right for pick in all_picks)
        lost = [pick.loss for pick in all_picks]
        rows.append(
            [title, len(all_picks), f"{right} ({100 * right / len(all_picks):.0f}%)",
             percent(sum(lost) / len(lost)), percent(max(lost))]
        )  # fmt: skip
    head = ["picked by", "groups", "the fastest", "time lost on average", "at most"]
    return table(head, rows)


# ------------------------------------------------------------------------------ others' own times


def elsewhere() -> str:
    """Times of GPUs that are not at hand: the error on each card, then kernel by kernel."""
    found = published()
    cards = dict.fromkeys(one.source.device for one in found)
    rows = [card([one for one in found if one.source.device == name]) for name in cards]
    titles = [f"**{device(name).title}**" for name in cards]
    cells = [[title, *row] for title, row in zip(titles, rows, strict=True)]
    cells.append([f"**all {len(cards)} cards**", *(f"**{cell}**" for cell in card(found))])
    head = ["card", "kernels", "first", "since", "half within", "largest error"]
    parts = [by_source([one for one in found if one.source == source]) for source in sources()]
    made_on = " ".join(
        f"{'First' if name == FIRST else 'Since'}: {made(of_published(name))}, nvcc "
        f"{of_published(name).provenance['nvcc']}."
        for name in (FIRST, PUBLISHED_SINCE)
    )
    return "\n\n".join([made_on, table(head, cells), *parts])


def card(found: list[Published]) -> list[str]:
    """How many kernels, mean errors of both predictions, and the middle and largest one since."""
    first, since = errors(found, since=False), errors(found)
    middle, largest = median(map(abs, since)), max(since, key=abs)
    of = "" if len(first) == len(found) else f" of {len(first)}"
    return [f"{len(found)}", f"{mean(first)}{of}", mean(since), f"{middle:.1%}",
            percent(largest)]  # fmt: skip


def by_source(found: list[Published]) -> str:
    """A row for each kernel of a source, and what was timed above them."""
    source = found[0].source
    rows = [
        [f"`{one.name}`", ms(one.seconds), ms(one.since), percent(one.errors[1]),
         "" if one.first is None else percent(one.errors[0]), one.by]
        for one in found
    ]  # fmt: skip
    said = (
        f"{source.what}. {source.timed[0].upper()}{source.timed[1:]}. "
        f"[{source.address}](https://{source.address}), commit {source.commit[:12]}."
    )
    head = ["kernel", "published", "predicted", "error", "error of the first one", "by"]
    summary = f"{source.title}, on an {device(source.device).title}: {len(found)} kernels, "
    summary += f"{mean(errors(found))} off on average"
    return fold(summary, f"{said}\n\n{table(head, rows)}")


# ---------------------------------------------------------------------------------------- sawtooth


def jumps(name: str) -> str:
    """Where the time of the figures' products jumps over n, and where the waves say so."""
    rows = []
    for key, of in sawtooth.series(name).items():
        sizes = [m.problem.n for m in of]
        measured = sawtooth.jumps(sizes, [m.seconds for m in of])
        if sawtooth.is_library(key):
            expected = sawtooth.full_waves(key, of, name, sawtooth.GUIDES)
        else:
            expected = sawtooth.jumps(sizes, sawtooth.predicted_seconds(key, of, name))
        both = sorted(set(measured) & set(expected))
        rows.append(
            [str(key), ", ".join(map(str, expected)), ", ".join(map(str, both)),
             len(measured) - len(both)]
        )  # fmt: skip
    head = ["product", "predicted at n =", "of these recorded", "recorded elsewhere"]
    return fold(f"{len(rows)} products", table(head, rows)) if rows else LEFT_OUT


TABLES = {
    "headline": headline,
    "every-set": every_set.told,
    "every-asked": every_set.asked,
    "every-worst": every_set.worst,
    "layouts": every_set.by_layout,
    "others": lambda: each_device(others),
    "compiled": lambda: each_device(compiled),
    "public": lambda: each_device(public),
    "families": lambda: each_device(partial(families, "held_out")),
    "families-3": lambda: families("held_out_3", "h200"),
    "families-2": lambda: families("held_out_2", "h200"),
    "other-families": lambda: families("held_out_families", "h200"),
    "other-worst": lambda: worst_of(cases("held_out_families", "h200"), "h200"),
    "tcec-3": lambda: families("held_out_tcec_3", "h200"),
    "tcec-3-worst": lambda: worst_of(cases("held_out_tcec_3", "h200"), "h200"),
    "tcec-2": lambda: families("held_out_tcec_2", "h200"),
    "tcec": lambda: families("held_out_tcec", "h200"),
    "mma-split-k-3": lambda: families("held_out_mma_split_k_3", "h200"),
    "mma-split-k-3-worst": lambda: worst_of(cases("held_out_mma_split_k_3", "h200"), "h200"),
    "mma-split-k-2": lambda: families("held_out_mma_split_k_2", "h200"),
    "mma-split-k": lambda: families("held_out_mma_split_k", "h200"),
    "hopper": lambda: families("held_out_hopper", "h200"),
    "hopper-h100": lambda: families("held_out_hopper", "h100_sxm"),
    "hopper-h100-worst": lambda: worst_of(cases("held_out_hopper", "h100_sxm"), "h100_sxm"),
    "hopper-2": lambda: families("held_out_hopper_2", "h200"),
    "hopper-2-h100": lambda: families("held_out_hopper_2", "h100_sxm"),
    "hopper-2-h100-worst": lambda: worst_of(cases("held_out_hopper_2", "h100_sxm"), "h100_sxm"),
    "tcec-3-h100": lambda: families("held_out_tcec_3", "h100_sxm"),
    "worst": lambda: each_device(worst_cases),
    "picked": lambda: each_device(picked),
    "looked-at": lambda: each_device(partial(families, "looked_at")),
    "power": power,
    "clusters": lambda: of_clusters("clusters"),
    "padded": lambda: of_clusters("padded"),
    "epilogues": lambda: one_pair(epilogues),
    "fp8": lambda: one_pair(fp8),
    "rows-anywhere": rows_anywhere,
    "jumps": lambda: each_device(jumps),
    "published": elsewhere,
    **inside.TABLES,
}


if __name__ == "__main__":
    write(PAGE, TABLES)
    PICTURE.write_bytes(png(picture(), DENSITY))
    inside.PICTURE.write_bytes(png(inside.picture(), DENSITY))

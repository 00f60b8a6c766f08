"""Write the tables of book/predictions.md from what was predicted and what was measured.

    python -m benchmarks.forecast.pages

They stand between the marks of `benchmarks.page_tables`; each has a part for every device of
which something is written down.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from benchmarks import ROOT, held_out, held_out_families
from benchmarks.forecast import sawtooth
from benchmarks.forecast.errors import (
    LARGE,
    Compared,
    by_family,
    circumstances,
    compared,
    mape,
    picks,
    worst,
)
from benchmarks.forecast.ladder import Case, families_cases
from benchmarks.forecast.others.case import CLASSES
from benchmarks.forecast.others.table import Beside, beside
from benchmarks.forecast.written import RECORDED, SINCE, Written, stored
from benchmarks.page_tables import table, write
from gemmlab import records
from gemmlab.device import device
from gemmlab.measure.measurement import Measurement

PAGE = ROOT / "book" / "predictions.md"
DEVICES = sorted((path.name for path in RECORDED.iterdir()), reverse=True)
WORST = 3  # of each family and size
LEFT_OUT = "Not measured yet."


def each_device(part: Callable[[str], str]) -> str:
    """What `part` says of each device, under its name."""
    return "\n\n".join(f"**{device(name).title}**\n\n{part(name)}" for name in DEVICES)


def percent(part: float) -> str:
    """A signed part as a text.

    >>> percent(0.0512), percent(-0.5)
    ('+5.1%', '−50.0%')
    """
    rounded = round(100 * part, 1) + 0.0  # no zero has a sign
    return f"{rounded:+.1f}%".replace("-", "−")


def mean(errors: Iterable[float]) -> str:
    """The mean of absolute errors as a text."""
    return f"{100 * mape(errors):.1f}%"


def ms(seconds: float | None) -> str:
    return "" if seconds is None else f"{1e3 * seconds:.3g} ms"


# ------------------------------------------------------------------------- kernels that are no GEMM


def others(name: str) -> str:
    """The kernels one by one, and the error of each class; first as they were predicted first."""
    timings = stored(name, "others_timed")
    return "\n\n".join(
        f"{dates(predictions, timings)}\n\n{kernel_by_kernel(beside(predictions, timings))}"
        for predictions in first_and_since(name, "others_predicted")
    )


def kernel_by_kernel(rows: list[Beside]) -> str:
    """A row for each kernel, and one for each class that was timed."""
    cells = []
    for kind in CLASSES:
        members = [one for one in rows if one.case.kind == kind]
        for one in members:
            errors = (one.error, one.memory_error) if one.measured else ()
            cells.append(
                [f"`{one.case.name}`", ms(one.measured), ms(one.predicted),
                 *([percent(e) for e in errors] or ["", ""]), one.by, one.case.idea.rstrip(".")]
            )  # fmt: skip
        if all(one.measured for one in members):
            means = [mean(getattr(o, of) for o in members) for of in ("error", "memory_error")]
            title = f"**{len(members)} kernels {kind}**"
            cells.append(
                [title, "", "", *(f"**{m}**" for m in means), "", "mean of absolute errors"]
            )
    head = ["kernel", "measured", "predicted", "error", "of memory alone", "by", "what it does"]
    return table(head, cells)


def first_and_since(name: str, what: str) -> list[Written]:
    """What was predicted before anything was measured, and what later code says if it was asked."""
    return [found for suffix in ("", SINCE) if (found := stored(name, what + suffix))]


def dates(predictions: Written, timings: Written | None) -> str:
    """When what was written down."""
    if timings is None:
        return f"{made(predictions)}; not timed yet."
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


def measurements(which: str, name: str) -> list[Measurement]:
    """What is recorded of a set on a device."""
    if which == "looked_at":
        return records.load(name) if name in records.devices() else []
    if which in held_out_families.SETS:
        folder = held_out.ROOT / name / held_out_families.FOLDER
        asked = {case.key: case.kernel for case in families_cases(name, which)}
        found = [
            m
            for kernel in dict.fromkeys(asked.values())
            for path in folder.glob(f"{kernel}.jsonl")
            for m in records.read(path)
        ]
        return [m for m in found if Case(m.kernel, m.problem, m.tiling).key in asked]
    folder = held_out.ROOT / name / held_out.FOLDER
    drawn = {(p.m, p.n, p.k) for p in held_out.problems(*held_out.SETS[which])}
    found = [m for path in sorted(folder.glob("*.jsonl")) for m in records.read(path)]
    return [m for m in found if (m.problem.m, m.problem.n, m.problem.k) in drawn]


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
    return table(["kernels", "size", "measured", "error", "of the bound", "largest error"], rows)


def worst_cases(name: str) -> str:
    """The largest errors of the last held-out set, of each family and size."""
    return worst_of(cases(blind(name), name), name)


def worst_of(found: list[Compared], name: str) -> str:
    """A row for each of the largest errors of each family and size."""
    if not found:
        return LEFT_OUT
    rows = [
        [str(c), ms(c.measured), ms(c.predicted), percent(c.error), percent(c.bound_error), c.by,
         circumstances(c, device(name).sms)]
        for members in by_family(found).values()
        for c in worst(members, WORST)
    ]  # fmt: skip
    head = ["case", "measured", "predicted", "error", "of the bound", "by", "what is unusual"]
    return table(head, rows)


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
    return table(head, rows) if rows else LEFT_OUT


TABLES = {
    "others": lambda: each_device(others),
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
    "jumps": lambda: each_device(jumps),
}


if __name__ == "__main__":
    write(PAGE, TABLES)

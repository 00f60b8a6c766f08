"""All sets of predictions in one table: what was predicted first, and what later code says.

A set is a file of predictions, `<device>/<name>_predicted.json` in `RECORDED`, with its times
beside it; what later code predicted of the same launches is in `<name>_predicted_since.json`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from statistics import fmean, median
from typing import Any

from benchmarks import held_out_families
from benchmarks.forecast import ladder, published
from benchmarks.forecast.written import RECORDED, SINCE, Written, stored
from benchmarks.inside.written import SINCE as INSIDE_SINCE, read as simulated_clocks
from benchmarks.page_tables import fold, mean, ms, percent, table
from gemmlab import kernels
from gemmlab.device import device
from gemmlab.measure.inside import inside
from gemmlab.problem import LAYOUTS

FIRST = "_predicted"
NAMES = "case", "kernel", "problem", "tiling"  # by which rows of two files find each other
WORSE = 0.1  # of what was measured: so much more of an error has its reason in `REASONS`
OF = {
    "held_out": "rungs in FP32, cuBLAS",
    "held_out_2": "the same, other sizes",
    "held_out_3": "the same, other sizes",
    "held_out_families": "k divided, `mma.sync`, *warp_specialised*",
    "held_out_tcec": "TCEC",
    "held_out_tcec_2": "TCEC, other sizes",
    "held_out_tcec_3": "TCEC, other sizes",
    "held_out_mma_split_k": "k divided on Tensor Cores",
    "held_out_mma_split_k_2": "the same, other sizes",
    "held_out_mma_split_k_3": "the same, other sizes",
    "held_out_hopper": "the TMA and `wgmma`",
    "held_out_hopper_2": "the same, other sizes",
    "others": "kernels that are no GEMM",
    "others_2": "other kernels that are no GEMM",
    "others_3": "additions all over an array",
    "compiled": "kernels by nvcc and Triton",
    "public": "kernels that others published",
    "power": "products at the limit of power, or beyond L2",
    "power_2": "the same, other sizes",
    "clusters": "*tma_multicast*",
    "padded": "*tma_padded*",
    "epilogues": "layers with an epilogue",
    "fp8": "products of FP8",
    "rows_anywhere": "cuBLAS, FP16, rows anywhere",
    "rows_anywhere_2": "the same, other sizes",
    "inside": "rungs with a clock inside",
    "published": "times that others published",
    "looked_at": "what this course's figures show",
    "readme": "README's rungs",
}
# Times that were known when these were predicted.
KNOWN = "looked_at", "readme"


@dataclass(frozen=True)
class Launch:
    """A launch's time and what was predicted of it [s]; None for what was not.

    key : what names it, kernel and problem among them; by : what the last prediction waits for
    """

    key: tuple[str, ...]
    measured: float
    first: float | None
    since: float | None
    by: str = ""

    @property
    def name(self) -> str:
        return " ".join(filter(None, self.key))

    @property
    def last(self) -> float:
        """The error of the last prediction."""
        first, since = self.errors
        return first if since is None else since

    @property
    def errors(self) -> tuple[float | None, float | None]:
        """Of both predictions, as parts of what was measured."""
        return tuple(p and p / self.measured - 1 for p in (self.first, self.since))

    @property
    def worse(self) -> bool:
        """Whether later code is off by more than the first one, by more than `WORSE`."""
        first, since = self.errors
        return None not in (first, since) and abs(since) - abs(first) > WORSE


@dataclass(frozen=True)
class Whole:
    """A set: its launches that were timed, and when and by what code each file was made."""

    name: str
    on: str
    launches: tuple[Launch, ...]
    first: Mapping[str, str]
    since: Mapping[str, str] | None

    @property
    def gpu(self) -> str:
        """Return the GPU's name, as narrow tables have room for it."""
        return device(self.on).title.split()[1] if self.on else "others"

    def off(self, since: bool) -> list[float]:
        """Return the errors of one of both predictions, of launches that have it."""
        return [e for one in self.launches if (e := one.errors[since]) is not None]


@cache
def sets() -> list[Whole]:
    """Return every set that is written down, blind ones first, in the order of `OF`."""
    found = [(path.name.removesuffix(f"{FIRST}.json"), path.parent.name)
             for path in RECORDED.glob(f"*/*{FIRST}.json")]  # fmt: skip
    every = [of_files(name, on) for name, on in found]
    return sorted([*every, of_clocks(), of_others()], key=lambda one: (_place(one), one.on))


def _place(one: Whole) -> int:
    return list(OF).index(one.name)


def of_files(name: str, on: str) -> Whole:
    """Return a set of two or three files; ValueError for a row that has two times."""
    first, since = (stored(on, f"{name}{FIRST}{suffix}") for suffix in ("", SINCE))
    seen, keys = times(name, on, first)
    made = [{_key(row, keys): row for row in of.rows} if of else {} for of in (first, since)]
    if strange := sorted(made[1].keys() - made[0].keys()):
        raise ValueError(f"{name} on {on}: predicted since, and not before: {strange[0]}")
    launches = [
        Launch(key, seen[key], said["seconds"], later and later["seconds"], (later or said)["by"])
        for key, said in made[0].items()
        if key in seen
        for later in (made[1].get(key),)
    ]
    return Whole(name, on, tuple(launches), first.provenance, since and since.provenance)


def times(
    name: str, on: str, first: Written
) -> tuple[dict[tuple[str, ...], float], tuple[str, ...]]:
    """Return what was measured of a set [s], and the names by which its rows are found."""
    if name in ladder.SETS:
        found = ladder.measurements(name, on)
        return {ladder.Case(m.kernel, m.problem, m.tiling).key: m.seconds for m in found}, NAMES[1:]
    timings = stored(on, f"{name}_timed")
    if timings is None:
        return {}, NAMES
    keys = tuple(n for n in NAMES if n in first.rows[0] and n in timings.rows[0])
    seen = {_key(row, keys): _seconds(row) for row in timings.rows}
    if len(seen) < len(timings.rows):
        raise ValueError(f"{name} on {on}: two times for one of its launches")
    return seen, keys


def _key(row: Mapping[str, Any], keys: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(str(row[name]) for name in keys if name in row)


def _seconds(row: Mapping[str, Any]) -> float:
    """Return the time of a row: of one launch, or the median of many."""
    row = row["ways"]["ours"] if "ways" in row else row
    return row["seconds"] if "seconds" in row else median(row["ns"]) * 1e-9


def of_clocks() -> Whole:
    """Return the rungs with a clock inside, by the times of their copies without one."""
    of, first = inside(), simulated_clocks()
    since = {row["kernel"]: row["bare_seconds"] for row in simulated_clocks(INSIDE_SINCE)} if (
        INSIDE_SINCE.exists()) else {}  # fmt: skip
    told = {row["kernel"]: row["bare_seconds"] for row in first}
    launches = [Launch((one.kernel, str(one.problem)), one.bare_seconds, told[one.kernel],
                       since.get(one.kernel)) for one in of.launches]  # fmt: skip
    return Whole("inside", "h100_sxm", tuple(launches), {}, {} if since else None)


def of_others() -> Whole:
    """Return the kernels whose times others published."""
    launches = [
        Launch((one.name, f"({one.source.title})"), one.seconds, one.first, one.since, one.by)
        for one in published.published()
    ]
    made = [published.predictions(n).provenance for n in (published.FIRST, published.SINCE)]
    return Whole("published", "", tuple(launches), *made)


# ------------------------------------------------------------------------------------- the page

# Why later code misses a launch more than the first one: mostly one of two errors was mended.
FEW = (
    "few blocks: L2 gives each of them more since decision 020; that the first tile comes late and "
    "stores of C take longer (decision 037) probably was hidden by too little"
)
CLOCK = (
    "the clock is lower and L2 gives more since decisions 020 and 038; too many cycles probably "
    "were hidden by a clock that was too high"
)
OF_L2 = "waits for more loads from device memory than the card's L2 lets through, as below"
REASONS = {  # set, GPU, how a launch's name begins
    ("held_out_families", "h200", "warp_specialised 960×384×944 "): FEW,
    ("held_out_tcec_3", "h100_sxm", "tcec_stored 128×336×272 "): FEW,
    ("held_out_tcec_3", "h100_sxm", "tcec_fused 128×336×272 "): FEW,
    ("held_out_tcec_3", "h100_sxm", "tcec_split 1040×4096×1376 "): CLOCK,
    ("held_out_hopper", "h100_sxm", "wgmma_pipelined 6448×5696×5856 "): CLOCK,
    ("held_out_mma_split_k_3", "h200", "mma_stream_k 592×96×47536 "): "not known",
    ("published", "", "v4 (gau-nernst, Learn CUDA with PyTorch: CUDA cores)"): OF_L2,
    ("published", "", "v5 (gau-nernst, Learn CUDA with PyTorch: CUDA cores)"): OF_L2,
    ("published", "", "01 (L. Mao"): OF_L2,
    ("published", "", "05 (T. Gautam"): "not known",
}


def why(one: Whole, launch: Launch) -> str | None:
    """Return the reason that is known of a launch; None where nobody has given one."""
    return next(
        (reason for (name, on, begins), reason in REASONS.items()
         if (name, on) == (one.name, one.on) and launch.name.startswith(begins)),
        None,
    )  # fmt: skip


def told() -> str:
    """Tell all sets in a sentence, each in a table, and each launch that later code misses more."""
    every = [one for one in sets() if one.launches]
    blind = [one for one in every if one.name not in KNOWN]
    again = [one for one in blind if one.since is not None]
    pairs = [one.errors for of in again for one in of.launches if None not in one.errors]
    first, since = zip(*pairs, strict=True)
    lost = [(one, launch) for one in every for launch in one.launches if launch.worse]
    said = (
        f"{sum(len(one.launches) for one in blind):,} launches of {len(blind)} sets were predicted "
        f"before anybody compared. Of {len(again)} sets later code has predicted {len(pairs):,} "
        f"again: these were {mean(first)} off on average first, and are {mean(since)} off since. "
        f"{len(lost)} launches are missed by more than a tenth more than they were."
    )
    return f"{said}\n\n{_table(every)}\n\n{_lost(lost)}"


def _table(every: list[Whole]) -> str:
    """A row for each set."""
    head = ["set", "of", "GPU", "timed", "first", "since", "half within", "largest", "code"]
    return table(head, [_row(one) for one in every])


def _row(one: Whole) -> list[object]:
    """How far off a set is, first and since; and what the later one, if any, is made by."""
    first, since = one.off(False), one.off(True)
    last, by = (since, one.since) if since else (first, one.first)
    return [
        one.name, OF[one.name] + " (known times)" * (one.name in KNOWN), one.gpu,
        len(one.launches), _off(first, one), _off(since, one),
        mean([median(map(abs, last))]), percent(max(last, key=abs)),
        by.get("predictor_sha256", "")[:7],
    ]  # fmt: skip


def _off(errors: list[float], one: Whole) -> str:
    """A set's mean error, and of how many launches where not of all; "" for none."""
    part = f" of {len(errors)}" if len(errors) < len(one.launches) else ""
    return f"{mean(errors)}{part}" if errors else ""


def _lost(lost: list[tuple[Whole, Launch]]) -> str:
    """A row for each launch that later code misses by more than a tenth more, and why."""
    cells = [
        [one.name, one.gpu, launch.name, ms(launch.measured),
         *map(percent, launch.errors), why(one, launch)]
        for one, launch in lost
    ]  # fmt: skip
    head = ["set", "GPU", "launch", "measured", "first", "since", "why"]
    return fold(f"{len(lost)} launches that became worse by more than a tenth", table(head, cells))


# What was missed most when kernels of all kinds were first tried; how far off it may be since; and
# the launches that tell: a set, and the kernels or cases of it.
ASKED = (
    ("a gather from a table beyond L2", 0.15, {"others_2": "gather_far"}),
    ("a gather from a table within L2", 0.15, {"others_2": "gather_near"}),
    ("atomic additions all over an array", 0.2, {"others_2": "degrees_far", "others_3": ".*"}),
    ("an SGEMM as students write it, 4096", 0.1, {"others_2": "sgemm_student"}),
    ("an SGEMM as students write it, 1024", 0.1, {"others_2": "sgemm_student:1024"}),
    ("a tiled transposition", 0.12, {"others_2": "transpose_no_padding"}),
    ("layer norm", 0.12, {"others_2": "layer_norm"}),
    ("*coalesced*, whose C is beyond L2", 0.12, {"power_2": "coalesced"}),
    ("products at the limit of power", 0.06, {"power_2": "(?!coalesced).*"}),
    ("cuBLAS, FP16, rows anywhere", 0.12, {"rows_anywhere_2": ".*"}),
)


def asked() -> str:
    """Tell how far off is what was missed most, beside what is asked for."""
    of = {one.name: one for one in sets() if one.on == "h100_sxm"}
    cells = []
    for what, most, chosen in ASKED:
        errors = [
            launch.errors
            for name, pattern in chosen.items()
            for launch in of[name].launches
            if re.fullmatch(pattern, launch.key[0])
        ]
        first, since = ([e[i] for e in errors if e[i] is not None] for i in (0, 1))
        told = (_mean(of, len(errors)) for of in (first, since))
        cells.append([what, len(errors), f"{most:.0%}", *told])
    return table(["case", "launches", "at most", "first", "since"], cells)


def _mean(errors: list[float], count: int) -> str:
    """One error with its sign, or the mean of several, and of how many where not all have one."""
    part = f" of {len(errors)}" if 0 < len(errors) < count else ""
    return (percent(errors[0]) if len(errors) == 1 else mean(errors) if errors else "") + part


KNOWS_POWER = "2026-11-26T23"  # from when on predictions count the limit of power, decision 038
WORST = 10
HOPPER = kernels.mma_tma, kernels.wgmma_pipelined, kernels.tma_stored


def worst() -> str:
    """The launches that the last predictions miss most; of sets that know the limit of power."""
    found = [
        (one, launch)
        for one in sets()
        if (one.since or one.first).get("date", "") >= KNOWS_POWER
        for launch in one.launches
    ]
    found.sort(key=lambda pair: -abs(pair[1].last))
    cells = [
        [one.name, one.gpu, launch.name, ms(launch.measured), percent(launch.last),
         launch.by]
        for one, launch in found[:WORST]
    ]  # fmt: skip
    return table(["set", "GPU", "launch", "measured", "error", "by"], cells)


def by_layout() -> str:
    """The mean error of each kernel on Hopper's Tensor Cores, with a sign, by its layout."""
    found: dict[str, dict[str, list[float]]] = {k.name: {} for k in HOPPER}
    for one in sets():
        for launch in one.launches if one.name in held_out_families.SETS else ():
            kernel, problem = launch.key[:2]
            if kernel in found:
                layout = next((x for x in LAYOUTS if problem.endswith(f" {x}")), LAYOUTS[0])
                found[kernel].setdefault(layout, []).append(launch.last)
    cells = [
        [f"*{kernel}*", *(f"{percent(fmean(of[x]))} of {len(of[x])}" for x in LAYOUTS)]
        for kernel, of in found.items()
    ]
    return table(["kernel", *LAYOUTS], cells)

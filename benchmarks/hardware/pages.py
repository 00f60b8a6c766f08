"""Write the tables of the book's pages about hardware from the records of GPUs.

    python -m benchmarks.hardware.pages

They stand between the marks of `benchmarks.page_tables`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from benchmarks.hardware.check import Result, bits
from benchmarks.hardware.checks import (
    counters as counting,
    kernels as of_kernels,
    loads as loading,
    realistic as courses,
)
from benchmarks.hardware.checks.sanitizer import TOOLS, WRONG, fault_line
from benchmarks.hardware.machine import ROOT
from benchmarks.hardware.probes.counted import CASES
from benchmarks.hardware.probes.products import gemms, simulated
from benchmarks.hardware.store import recorded
from benchmarks.page_tables import table, write
from benchmarks.samples.wrong_kernels import load
from gemmlab.device import device
from gemmlab.model import transactions

DEVICE = "h200"
PROFILED = "h100_sxm"  # where the course's kernels were profiled
SHOWN = {
    "load requests": "global_load_requests",
    "load sectors": "global_load_sectors",
    "store requests": "global_store_requests",
    "store sectors": "global_store_sectors",
    "shared loads": "shared_load_requests",
    "shared load wavefronts": "shared_load_wavefronts",
    "shared stores": "shared_store_requests",
    "shared store wavefronts": "shared_store_wavefronts",
    "bank conflicts": "shared_bank_conflicts",
}


OF_KERNELS = {name: c for name, c in SHOWN.items() if c in of_kernels.METRICS} | {
    "atomic sectors": "global_atomic_sectors",
    "bytes copied by the TMA": "tensor_copy_bytes",
    "bytes stored by it": "tensor_store_bytes",
}


def side_by_side(
    counted: Mapping[str, int], measured: Mapping[str, int], names: Iterable[str]
) -> list[str]:
    """Simulated counts; where the hardware's differ, both."""
    return [
        f"{counted[n]:,}" if counted[n] == measured[n] else f"**{counted[n]:,} / {measured[n]:,}**"
        for n in names
    ]


def equal(rows: list[list[str]]) -> str:
    """How many rows of counts differ nowhere, of all."""
    return f"{sum('**' not in ''.join(row[1:]) for row in rows)} of {len(rows)}"


def counters() -> str:
    """Counters of single cases."""
    known = {k: v for r in recorded(DEVICE, "counters").values() for k, v in r.measured.items()}
    rows = []
    for case in CASES:
        measured = counting.hardware(known[case.name]["counters"])
        counts = side_by_side(counting.simulated(case.name), measured, SHOWN.values())
        rows.append([f"`{case.name}`", *counts])
    return f"{equal(rows)} cases are equal in every column.\n\n" + table(["case", *SHOWN], rows)


def kernels() -> str:
    """The same of the course's kernels."""
    rows = []
    for name, result in recorded(PROFILED, of_kernels.NAME).items():
        counted = of_kernels.simulated(name, device(PROFILED))
        counts = side_by_side(counted, of_kernels.hardware(result.measured), OF_KERNELS.values())
        rows.append([f"*{name}*", *counts])
    return f"{equal(rows)} kernels are equal in every column.\n\n" + table(
        ["kernel", *OF_KERNELS], rows
    )


def realistic() -> str:
    """How many kernels as courses have them count the same, and why the others do not."""
    measured = {k: v for r in recorded(DEVICE, "realistic").values() for k, v in r.measured.items()}
    launches = sum(len(one["counters"]) for one in measured.values())
    right = sum(one["right"] for one in measured.values())
    equal = len(set(measured) - set(courses.APART))
    rows = [[why, len(names)] for why, names in courses.DIFFERS.items()]
    return (
        f"{right} of {len(measured)} cases ({launches} launches) give the right result on the GPU, "
        f"and {equal} count the same in every column and every launch. The others:\n\n"
    ) + table(["why the counts differ", "cases"], rows)


def loads() -> str:
    """Wavefronts and cycles of a load of 32 float32 values at several strides."""
    rows, worst, below, of_many, all_cycles = [], 0.0, 0, [], []
    known = [x for r in recorded(DEVICE, "loads").values() for x in r.measured["loads"]]
    for one in known:
        lanes = loading.lanes(one)
        distinct, passes, least = (
            int(transactions.lines(*lanes[:2])),
            int(transactions.l1_wavefronts(*lanes)),
            int(transactions.l1_cycles(*lanes)),
        )
        measured, cycles = loading.of_one_load(one)
        worst = max(worst, abs(measured - passes))
        below += cycles < least
        all_cycles.append(cycles)
        if distinct == transactions.WARP and least == 8:
            of_many.append(cycles)
        if re.fullmatch(
            r"stride (4|8|16|32|36|64|68|128|132|256|1000|1024|4000|4092|4096|4100)",
            one["pattern"],
        ):
            name = one["pattern"].removeprefix("stride ") + " B"
            rows.append([name, distinct, passes, f"{measured:.2f}", least, f"{cycles:.1f}"])
    return (
        f"{len(known)} patterns; the largest difference between measured wavefronts a load and "
        f"the rule is {worst:.2f}; {below} took fewer cycles than the rule allows. The loop itself "
        f"takes {min(all_cycles):.1f} cycles a load, so that fewer cannot be seen. Loads of 32 "
        f"lines for which the rule says 8 cycles took {min(of_many):.1f} to {max(of_many):.1f}.\n\n"
        + table(
            [
                "stride",
                "lines",
                "wavefronts by the rule",
                "measured",
                "least cycles by the rule",
                "measured",
            ],
            rows,
        )
    )


def hazards() -> str:
    """Each wrong kernel: what the simulator says, and what each tool says."""
    known = {piece: result.measured for piece, result in recorded(DEVICE, "sanitizer").items()}
    rows, found, located = [], Counter(), 0
    missing = [name for name in WRONG if name not in known]
    for name, path in WRONG.items():
        expected, fault = load(path).EXPECT, fault_line(name)
        if name in missing:
            cells = ["not yet recorded" for _ in TOOLS]
            rows.append([f"`{name}`", f"{expected}, line {fault}", *cells])
            continue
        cells, said = [], False
        for tool in TOOLS:
            one = known[name][tool]
            kinds = ", ".join(one["kinds"]) or ("" if one["ended"] else "does not end")
            if one["kinds"]:
                said = True
                found[expected] += 1
                located += fault in one["lines"]
                kinds += f" (line {', '.join(map(str, one['lines']))})"
            cells.append(kinds or "nothing")
        found["all"] += said
        rows.append([f"`{name}`", f"{expected}, line {fault}", *cells])
    right = [measured for name, measured in known.items() if name not in WRONG]
    reported = sum(any(one["kinds"] for one in measured.values()) for measured in right)
    kinds = ", ".join(f"{count} × {kind}" for kind, count in found.items() if kind != "all")
    later = f", of which {len(missing)} have not been recorded on a GPU yet" if missing else ""
    return (
        f"compute-sanitizer finds a fault in {found['all']} of {len(rows) - len(missing)} wrong "
        f"kernels ({kinds}), {located} at the line that is at fault; the simulator and the check "
        f"of results find all {len(rows)}{later}. Of {len(right)} right kernels it "
        f"reports {reported}.\n\n" + table(["kernel", "simulator", *TOOLS], rows)
    )


def layouts() -> str:
    """Each fragment layout: registers of all lanes that were read, and how many differ."""
    return _compared(recorded(DEVICE, "layouts").values(), "layout", "registers")


def instructions() -> str:
    """Each instruction: values that were compared bit for bit, and how many differ."""
    return _compared(recorded(DEVICE, "instructions").values(), "instruction", "values")


def _compared(results: Iterable[Result], what: str, things: str) -> str:
    results = list(results)
    done = [r for r in results if not r.left_out]
    compared, wrong = (sum(getattr(r, n) for r in done) for n in ("compared", "differing"))
    rows = [[f"`{r.piece}`", f"{r.compared:,}", f"{r.differing:,}"] for r in done]
    left = [f"`{r.piece}`" for r in results if r.left_out]
    note = f" Not compared: {', '.join(left)}." if left else ""
    return (
        f"{len(done)} {what}s, {compared:,} {things} compared, {wrong:,} differ.{note}\n\n"
        + table([what, f"{things} compared", "differ"], rows)
    )


def products() -> str:
    """Each whole product: the elements of its result, and how many of the simulator's differ."""
    rows = []
    for name, one in gemms().items():
        measured = recorded(DEVICE, "products")[name].measured["C"]
        different = bits(simulated(one)) != bits(measured)
        what = one.kernel.__doc__.split(". ")[0].rstrip(".")
        rows.append([f"`{name}`", what, f"{different.size:,}", int(different.sum())])
    return table(["kernel", "what", "elements of C", "differ"], rows)


def origin(check: str, on: str = DEVICE) -> str:
    """Where what is recorded of a check comes from."""
    told = next(iter(recorded(on, check).values())).origin
    known = ("device", "driver", "ncu", "compute_sanitizer", "numba_cuda", "date")
    return ", ".join(f"{key} {told[key]}" for key in known if key in told) + "."


TABLES = {
    "counters": counters,
    "kernels": kernels,
    "realistic": realistic,
    "loads": loads,
    "hazards": hazards,
    "layouts": layouts,
    "instructions": instructions,
    "products": products,
    "counters-origin": lambda: origin("counters"),
    "kernels-origin": lambda: origin("kernels", PROFILED),
    "realistic-origin": lambda: origin("realistic"),
    "hazards-origin": lambda: origin("sanitizer"),
    "instructions-origin": lambda: origin("instructions"),
}


PAGES = [ROOT / "book" / f"{name}.md" for name in ("hardware", "hazards", "instructions")]


if __name__ == "__main__":
    for page in PAGES:
        write(page, TABLES)

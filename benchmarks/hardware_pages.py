"""Write the tables of the book's pages about hardware from the recorded data.

    python benchmarks/hardware_pages.py

What stands between the marks ``<!-- table NAME -->`` and ``<!-- end -->`` is replaced.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests" / "hardware")]
DATA = ROOT / "tests" / "data"
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
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


def read(name: str) -> list[dict]:
    """The records of a file in tests/data."""
    return [json.loads(line) for line in (DATA / name).read_text("utf-8").splitlines()]


def table(header: list[str], rows: list[list[object]]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def counters() -> str:
    """Simulated counts; where the hardware's differ, both."""
    from kernels import CASES

    from gemmlab import simulate

    recorded = {record["case"]: record["counters"] for record in read("h200_counters.jsonl")}
    rows = []
    for case in CASES:
        counted = simulate(case.kernel, case.grid, case.block, *case.arguments()).counters
        measured = dict(recorded[case.name])
        measured["shared_bank_conflicts"] = (
            measured["shared_load_bank_conflicts"] + measured["shared_store_bank_conflicts"]
        )
        cells = [
            f"{counted[n]:,}"
            if counted[n] == measured[n]
            else f"**{counted[n]:,} / {measured[n]:,}**"
            for n in SHOWN.values()
        ]
        rows.append([f"`{case.name}`", *cells])
    equal = sum("**" not in "".join(row[1:]) for row in rows)
    return f"{equal} of {len(rows)} cases are equal in every column.\n\n" + table(
        ["case", *SHOWN], rows
    )


def loads() -> str:
    """Wavefronts and cycles of a load of 32 float32 values at several strides."""
    from patterns import ROUNDS, WARPS

    from gemmlab.model import transactions

    rows, worst, below, of_many, all_cycles = [], 0.0, 0, [], []
    records = read("h200_loads.jsonl")
    for record in records:
        elements = np.array(record["elements"])
        on = elements >= 0
        address = np.where(on, elements * record["width"], 0)
        passes = int(transactions.l1_wavefronts(address, on, record["width"]))
        least = int(transactions.l1_cycles(address, on, record["width"]))
        times = ROUNDS * WARPS
        measured = record["counters"]["l1_wavefronts"] / times
        cycles = record["counters"]["cycles"] / times
        worst = max(worst, abs(measured - passes))
        below += cycles < least
        all_cycles.append(cycles)
        if int(transactions.lines(address, on)) == transactions.WARP and least == 8:
            of_many.append(cycles)
        if re.fullmatch(
            r"stride (4|8|16|32|36|64|68|128|132|256|1000|1024|4000|4092|4096|4100)",
            record["pattern"],
        ):
            name = record["pattern"].removeprefix("stride ") + " B"
            distinct = int(transactions.lines(address, on))
            rows.append([name, distinct, passes, f"{measured:.2f}", least, f"{cycles:.1f}"])
    return (
        f"{len(records)} patterns; the largest difference between measured wavefronts a load and "
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
    from tests.support.wrong_kernels import FILES, load

    records = {(r["kernel"], r["tool"]): r for r in read("h200_sanitizer.jsonl")}
    rows, found, located = [], Counter(), 0
    for path in FILES:
        name, wrong = path.stem, load(path)
        lines = path.read_text("utf-8").splitlines()
        fault = next(i for i, line in enumerate(lines, 1) if "# fault" in line)
        cells, said = [], False
        for tool in TOOLS:
            record = records[name, tool]
            kinds = ", ".join(record["kinds"]) or ("" if record["ended"] else "does not end")
            if record["kinds"]:
                said = True
                found[wrong.EXPECT] += 1
                located += fault in record["lines"]
                kinds += f" (line {', '.join(map(str, record['lines']))})"
            cells.append(kinds or "nothing")
        found["all"] += said
        rows.append([f"`{name}`", f"{wrong.EXPECT}, line {fault}", *cells])
    right = {key: r["kinds"] for key, r in records.items() if key[0].startswith("right_")}
    kinds = ", ".join(f"{count} × {kind}" for kind, count in found.items() if kind != "all")
    return (
        f"compute-sanitizer finds a fault in {found['all']} of {len(rows)} wrong kernels "
        f"({kinds}), {located} at the line that is at fault; the simulator and the check of "
        f"results find all {len(rows)}. Of {len({name for name, _ in right})} right kernels it "
        f"reports {len({name for (name, _), kinds in right.items() if kinds})}.\n\n"
        + table(["kernel", "simulator", *TOOLS], rows)
    )


def layouts() -> str:
    """Each fragment layout: registers of all lanes that were read, and how many differ."""
    prefix = "layout "
    records = [r for r in read("h200_instructions.jsonl") if r["task"].startswith(prefix)]
    return _compared(records, prefix, "layout", "registers")


def instructions() -> str:
    """Each instruction: values that were compared bit for bit, and how many differ."""
    records = [r for r in read("h200_instructions.jsonl") if not r["task"].startswith("layout ")]
    return _compared(records, "", "instruction", "values")


def _compared(records: list[dict], prefix: str, what: str, things: str) -> str:
    done = [r for r in records if "compared" in r]
    compared, wrong = (sum(r[n] for r in done) for n in ("compared", "mismatches"))
    rows = [
        [f"`{r['task'].removeprefix(prefix)}`", f"{r['compared']:,}", f"{r['mismatches']:,}"]
        for r in done
    ]
    left = [f"`{r['task'].removeprefix(prefix)}`" for r in records if "compared" not in r]
    note = f" Not compared: {', '.join(left)}." if left else ""
    return (
        f"{len(done)} {what}s, {compared:,} {things} compared, {wrong:,} differ.{note}\n\n"
        + table([what, f"{things} compared", "differ"], rows)
    )


def products() -> str:
    """Each whole product: the elements of its result, and how many of the simulator's differ."""
    import warp_gemms

    rows = []
    with np.load(warp_gemms.STORED) as stored:
        for name, one in warp_gemms.gemms().items():
            bits = f"u{stored[name].itemsize}"
            different = warp_gemms.simulated(one).view(bits) != stored[name].view(bits)
            what = one.kernel.__doc__.split(". ")[0].rstrip(".")
            rows.append([f"`{name}`", what, f"{different.size:,}", int(different.sum())])
    return table(["kernel", "what", "elements of C", "differ"], rows)


def origin(name: str) -> str:
    """Where a file's data come from."""
    record = read(name)[0]
    known = ("device", "driver", "ncu", "compute_sanitizer", "numba_cuda", "date")
    return ", ".join(f"{key} {record[key]}" for key in known if key in record) + "."


TABLES = {
    "counters": counters,
    "loads": loads,
    "hazards": hazards,
    "layouts": layouts,
    "instructions": instructions,
    "products": products,
    "counters-origin": lambda: origin("h200_counters.jsonl"),
    "hazards-origin": lambda: origin("h200_sanitizer.jsonl"),
    "instructions-origin": lambda: origin("h200_instructions.jsonl"),
}


def main() -> None:
    """Fill the pages."""
    for name in ("hardware", "hazards", "instructions"):
        page = ROOT / "book" / f"{name}.md"
        text = re.sub(
            r"(<!-- table ([\w-]+) -->\n).*?(<!-- end -->)",
            lambda m: f"{m[1]}\n{TABLES[m[2]]()}\n\n{m[3]}",
            page.read_text("utf-8"),
            flags=re.DOTALL,
        )
        page.write_text(text, "utf-8", newline="\n")


if __name__ == "__main__":
    main()

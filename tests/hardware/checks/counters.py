"""Profile the cases of tests/hardware/kernels.py with Nsight Compute, and global-load patterns.

On a machine with a GPU whose counters may be read:

    python benchmarks/hardware_counters.py profile cases OUT.jsonl
    python benchmarks/hardware_counters.py profile patterns OUT.jsonl

`launch cases` and `launch patterns` are what runs under the profiler.
"""

from __future__ import annotations

import csv
import hashlib
import inspect
import json
import platform
import re
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "hardware")]

# Name here -> metrics of Nsight Compute whose sums are added.
LSU = "l1tex__data_pipe_lsu_wavefronts_mem"
CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem"
METRICS = {
    "global_load_requests": ["l1tex__t_requests_pipe_lsu_mem_global_op_ld"],
    "global_load_sectors": ["l1tex__t_sectors_pipe_lsu_mem_global_op_ld"],
    "global_store_requests": ["l1tex__t_requests_pipe_lsu_mem_global_op_st"],
    "global_store_sectors": ["l1tex__t_sectors_pipe_lsu_mem_global_op_st"],
    "shared_load_requests": ["smsp__inst_executed_op_shared_ld_pred_on_any"],
    "shared_store_requests": ["smsp__inst_executed_op_shared_st_pred_on_any"],
    "shared_load_wavefronts": [f"{LSU}_shared_op_ld"],
    "shared_store_wavefronts": [f"{LSU}_shared_op_st"],
    "shared_load_bank_conflicts": [f"{CONFLICTS}_shared_op_ld"],
    "shared_store_bank_conflicts": [f"{CONFLICTS}_shared_op_st"],
    "l1_wavefronts": [f"{LSU}_lgds"],
    "l1_load_wavefronts": [f"{LSU}_lgds_cmd_read"],
    "l1_store_wavefronts": [f"{LSU}_lgds_cmd_write"],
    "global_load_bank_conflicts": [f"{CONFLICTS}_gds_op_ld"],
    "global_store_bank_conflicts": [f"{CONFLICTS}_gds_op_st"],
    "inst_executed": ["smsp__inst_executed"],
    "writeback_cycles": ["l1tex__lsu_writeback_active"],
    "cycles": ["sm__cycles_active"],  # its sum over SMs, of which one is busy
}
PATTERN_METRICS = [
    "l1_wavefronts",
    "global_load_requests",
    "global_load_sectors",
    "global_load_bank_conflicts",
    "writeback_cycles",
    "cycles",
    "inst_executed",
]


def launch_cases() -> None:
    """Launch every case once, its kernel compiled under the case's name."""
    from kernels import CASES

    from gemmlab.driver import numba_cuda

    cuda = numba_cuda()
    for case in CASES:
        kernel = _named(case.kernel, case.name)
        arguments = [
            cuda.to_device(a) if isinstance(a, np.ndarray) else a for a in case.arguments()
        ]
        cuda.jit(kernel)[case.grid, case.block](*arguments)
        cuda.synchronize()


def launch_patterns() -> None:
    """Launch the probe for every pattern, in the order of `patterns()`."""
    from patterns import ROUNDS, SPAN, WARPS, pattern_dtype, patterns, probe

    from gemmlab.driver import numba_cuda

    cuda = numba_cuda()
    compiled = cuda.jit(probe)
    memory = {w: cuda.to_device(np.zeros(SPAN // w, pattern_dtype(w))) for w in (1, 2, 4, 8)}
    out = {w: cuda.to_device(np.zeros(32 * WARPS, pattern_dtype(w))) for w in memory}
    for pattern in patterns():
        at = cuda.to_device(pattern.elements)
        width = pattern.width
        compiled[1, 32 * WARPS](memory[width], at, np.int64(0), np.int64(ROUNDS), out[width])
    cuda.synchronize()


def _named(function, name):
    """A copy of `function` that the compiler will call `name`."""
    code = function.__code__.replace(co_name=name, co_qualname=name)
    copy = type(function)(
        code, function.__globals__, name, function.__defaults__, function.__closure__
    )
    copy.__qualname__ = name
    return copy


def profile(what: str, out: Path) -> None:
    """Run `launch what` under Nsight Compute and write one JSON line for each launch."""
    ncu = shutil.which("ncu") or "/usr/local/cuda/bin/ncu"
    names = list(METRICS) if what == "cases" else PATTERN_METRICS
    metrics = ",".join(f"{m}.sum" for n in names for m in METRICS[n])
    command = [
        ncu, "--clock-control", "none", "--csv", "--page", "raw", "--print-units", "base",
        "--metrics", metrics, sys.executable, __file__, "launch", what,
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    Path(f"{out}.csv").write_text(done.stdout, "utf-8")
    if done.returncode:
        raise SystemExit(f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
    rows = parse(done.stdout)
    with out.open("w", encoding="utf-8", newline="\n") as file:
        for line in lines(what, rows, names, provenance(ncu)):
            file.write(json.dumps(line, separators=(",", ":")) + "\n")


def parse(text: str) -> list[dict[str, str]]:
    """The launches of Nsight Compute's raw CSV page; the row of units is left out."""
    table = [line for line in text.splitlines() if line.startswith('"')]
    return [row for row in csv.DictReader(table) if row["ID"].strip()]


def lines(what, rows, names, origin):
    """One record for each launch: its case or pattern, its counters, where they come from."""
    if what == "cases":
        from kernels import CASES

        known = CASES
    else:
        from patterns import patterns

        known = patterns()
    if len(known) != len(rows):
        raise SystemExit(f"{len(rows)} launches were profiled, not {len(known)}")
    for item, row in zip(known, rows, strict=True):
        counters = {n: round(sum(_number(row[f"{m}.sum"]) for m in METRICS[n])) for n in names}
        if what == "cases":
            if not re.search(rf"\b{item.name}\b", row["Kernel Name"].replace("::", " ")):
                print(f"note: case {item.name} was compiled as {row['Kernel Name']}")
            yield {"case": item.name, "counters": counters,
                   "source_sha256": source_hash(item.kernel), **origin}  # fmt: skip
        else:
            yield {"pattern": item.name, "width": item.width,
                   "elements": item.elements.tolist(), "counters": counters, **origin}  # fmt: skip


def source_hash(function) -> str:
    """The start of the SHA-256 of a kernel's source and of what its closure holds."""
    held = inspect.getclosurevars(function).nonlocals
    text = inspect.getsource(function) + repr(sorted((k, str(v)) for k, v in held.items()))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def provenance(ncu: str) -> dict[str, str]:
    """Device, driver, versions and date."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    device, driver = (
        subprocess.run(query, capture_output=True, text=True, check=True).stdout.split("\n")[0]
    ).split(", ")
    version = subprocess.run([ncu, "--version"], capture_output=True, text=True, check=True).stdout
    import numba_cuda

    return {
        "device": device,
        "driver": driver,
        "ncu": re.search(r"Version (\S+)", version)[1],
        "numba_cuda": numba_cuda.__version__,
        "python": platform.python_version(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _number(text: str) -> float:
    return float(text.replace(",", ""))


if __name__ == "__main__":
    if sys.argv[1] == "launch":
        {"cases": launch_cases, "patterns": launch_patterns}[sys.argv[2]]()
    else:
        profile(sys.argv[2], Path(sys.argv[3]))

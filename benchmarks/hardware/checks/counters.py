"""Requests, sectors, wavefronts and bank conflicts of kernels: Nsight Compute's and simulated.

The kernels are those of `probes/counted.py`. A few differ, each in the counters that it names and
for a reason that it gives.
"""

import hashlib
import inspect
from collections.abc import Callable, Mapping
from functools import cache

import numpy as np

from benchmarks.hardware.check import Check, Comparison, Measured
from benchmarks.hardware.probes.counted import CASES, Case
from benchmarks.hardware.profiler import NCU, profile
from gemmlab import simulate
from gemmlab.device import Device
from gemmlab.instructions import host

NAME = "counters"
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
}
COUNTERS = (
    "global_load_requests",
    "global_load_sectors",
    "global_store_requests",
    "global_store_sectors",
    "shared_load_requests",
    "shared_load_wavefronts",
    "shared_store_requests",
    "shared_store_wavefronts",
    "shared_bank_conflicts",
)
# Pieces, of about as much work each: a profiler starts once for all launches of one.
GROUPS = {
    "global": ("strided", "offset", "ragged", "permuted", "masked", "width", "indirect"),
    "transpose": ("transpose",),
    "banks": ("banks", "reduction"),
    "rungs": ("rungs",),
}


def cases(piece: str) -> list[Case]:
    return [case for case in CASES if case.group in GROUPS[piece]]


def pieces(device: Device) -> Mapping[str, str]:
    return dict.fromkeys(GROUPS, "")


def launch(piece: str) -> None:
    """Launch every case once, its kernel compiled under the case's name."""
    cuda = host.cuda()
    for case in cases(piece):
        given = [cuda.to_device(a) if isinstance(a, np.ndarray) else a for a in case.arguments()]
        cuda.jit(named(case.kernel, case.name))[case.grid, case.block](*given)
        cuda.synchronize()


def named(function: Callable, name: str) -> Callable:
    """A copy of `function` that the compiler will call `name`."""
    code = function.__code__.replace(co_name=name, co_qualname=name)
    copy = type(function)(
        code, function.__globals__, name, function.__defaults__, function.__closure__
    )
    copy.__qualname__ = name
    return copy


def measure(piece: str, device: Device) -> Measured:
    return {
        case.name: {"counters": counters, "source_sha256": source_hash(case.kernel)}
        for case, counters in zip(cases(piece), profile(NAME, piece, METRICS), strict=True)
    }


def source_hash(function: Callable) -> str:
    """The start of the SHA-256 of a kernel's source and of what its closure holds."""
    held = inspect.getclosurevars(function).nonlocals
    text = inspect.getsource(function) + repr(sorted((k, str(v)) for k, v in held.items()))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@cache
def simulated(name: str) -> Mapping[str, int]:
    """The simulator's counters of a case."""
    case = next(case for case in CASES if case.name == name)
    return simulate(case.kernel, case.grid, case.block, *case.arguments()).counters


def hardware(counters: Mapping[str, int]) -> dict[str, int]:
    """Measured counters, with the bank conflicts of loads and stores as one."""
    conflicts = sum(counters[f"shared_{way}_bank_conflicts"] for way in ("load", "store"))
    return {**counters, "shared_bank_conflicts": conflicts}


def compare(piece: str, measured: Measured, device: Device) -> Comparison:
    found = Comparison()
    for case in cases(piece):
        source = measured[case.name]["source_sha256"]
        found.equal(f"{case.name}: hash of the source", source, source_hash(case.kernel))
        read, counted = hardware(measured[case.name]["counters"]), simulated(case.name)
        for name in COUNTERS:
            if name in case.differs:
                text = f"{case.name}: {name} is {read[name]}, no less than simulated"
                found.holds(0 < read[name] < counted[name], text)
            else:
                found.equal(f"{case.name}: {name}", read[name], counted[name])
    return found


CHECK = Check(
    NAME,
    "counters of whole kernels: Nsight Compute's and the simulator's",
    pieces,
    measure,
    compare,
    tool=NCU,
    launch=launch,
    quick=("transpose",),
)

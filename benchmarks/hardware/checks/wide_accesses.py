"""Single accesses of 8 and 16 bytes a lane: Nsight Compute's counters and the simulator's.

Asynchronous copies have a rule of their own: to the simulator one is a load and a store, but no
counter has its store, and of 16 bytes a lane the profiler counts the pairs of a line that is read
and a sector that is written.
"""

from collections.abc import Mapping

import numpy as np

from benchmarks.hardware.check import Check, Comparison, Measured
from benchmarks.hardware.probes.wide import KERNELS, Case, arguments, cases
from benchmarks.hardware.profiler import NCU, profile
from gemmlab import simulate
from gemmlab.device import Device
from gemmlab.instructions import host

NAME = "wide_accesses"
WAVES = "l1tex__data_pipe_lsu_wavefronts_mem_shared"
METRICS = {
    "shared_load_wavefronts": [f"{WAVES}_op_ld"],
    "shared_store_wavefronts": [f"{WAVES}_op_st"],
    "global_load_sectors": ["l1tex__t_sectors_pipe_lsu_mem_global_op_ld"],
    "async_requests": ["smsp__inst_executed_op_ldgsts"],
}
COPIES = {"copy_4": 4, "copy_16": 16, "scatter_16": 16}  # bytes a lane
COMPARED = ("shared_load_wavefronts", "shared_store_wavefronts", "global_load_sectors")
SECTORS_OF_AT = 4  # of the load that tells a lane its row
GROUPS = {
    "shared": ("shared_load_4", "shared_load_2", "shared_store_4"),
    "global": ("global_load_4", *COPIES),
    "ldmatrix": ("ldmatrix_x4", "ldmatrix_x2", "ldmatrix_x1"),
}


def some(piece: str) -> dict[str, Case]:
    """The cases of a piece, by name."""
    return {f"{c.kernel}, {c.pattern}": c for c in cases() if c.kernel in GROUPS[piece]}


def pieces(device: Device) -> Mapping[str, str]:
    capability = device.compute_capability
    least = {"shared": (7, 0), "global": (8, 0), "ldmatrix": (7, 5)}
    return {
        piece: "" if capability >= need else "needs compute capability {}.{}".format(*need)
        for piece, need in least.items()
    }


def launch(piece: str) -> None:
    cuda = host.cuda()
    compiled = {name: cuda.jit(KERNELS[name]) for name in GROUPS[piece]}
    for case in some(piece).values():
        compiled[case.kernel][1, 32](*map(cuda.to_device, arguments(case)))
    cuda.synchronize()


def measure(piece: str, device: Device) -> Measured:
    rows = profile(NAME, piece, METRICS, "--cache-control", "none")
    return {
        name: {"rows": case.rows.tolist(), "counters": counters}
        for (name, case), counters in zip(some(piece).items(), rows, strict=True)
    }


def simulated(case: Case) -> Mapping[str, int]:
    """The simulator's counters of a case; copies leave shared memory half unwritten."""
    given = arguments(case)
    return simulate(KERNELS[case.kernel], 1, 32, *given, on_hazard="collect").counters


def compare(piece: str, measured: Measured, device: Device) -> Comparison:
    found = Comparison()
    for name, case in some(piece).items():
        found.equal(f"{name}: rows", measured[name]["rows"], case.rows.tolist())
        read, counted = measured[name]["counters"], simulated(case)
        if case.kernel in COPIES:
            compare_copy(found, name, case, read, counted)
        else:
            for counter in COMPARED:
                found.equal(f"{name}: {counter}", read[counter], counted.get(counter, 0))
    return found


def compare_copy(
    found: Comparison, name: str, case: Case, read: Mapping[str, int], counted: Mapping[str, int]
) -> None:
    lane, on = np.arange(32), case.rows >= 0
    source, to = (lane, case.rows) if case.kernel == "scatter_16" else (case.rows, lane)
    sectors = len(set(source[on] * 16 // 32))
    by_rule = counted["global_load_sectors"] - SECTORS_OF_AT
    found.equal(f"{name}: sectors that are read, simulated", by_rule, sectors)
    if COPIES[case.kernel] == 16:
        sectors = len(set(zip(source[on] * 16 // 128, to[on] * 16 // 32, strict=True)))
    found.equal(f"{name}: sectors", read["global_load_sectors"], sectors + SECTORS_OF_AT)
    found.equal(f"{name}: requests", read["async_requests"], 1)
    stores = read["shared_store_wavefronts"], counted["shared_store_wavefronts"]
    found.holds(
        stores[0] == 0 < stores[1], f"{name}: wavefronts of stores, measured and simulated {stores}"
    )


CHECK = Check(
    NAME,
    "counters of single accesses, 8 and 16 bytes a lane: Nsight Compute's and the simulator's",
    pieces,
    measure,
    compare,
    tool=NCU,
    launch=launch,
)

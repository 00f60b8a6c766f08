"""The simulated GPU: runs a Numba-CUDA kernel in NumPy, counts what the hardware counts.

    numbers   what a value of a kernel is: numbers over lanes, masks of those that run
    syntax    from the source of a kernel to a function that runs for all lanes at once
    races     what a kernel can do wrong, and the shadows that know who touched each element
    memory    arrays: where an access goes, what it costs, what it moves
    report    what a launch did: counters, hazards, notes, listing, trace
    builtins  what a kernel can call: the names of `cuda`, instructions, `print`
    machine   the parts that run a kernel, and the machine that is made of them
    launch    `simulate`, and the report of the last launch
    cuda      the stand-in for `numba.cuda`, whose kernels are launched by `simulate`

Each imports only what stands above it. Counters and hazards are in `Report`; values in the arrays,
changed in place as on a GPU.
"""

from gemmlab.simt.launch import last_report, simulate
from gemmlab.simt.races.hazards import Hazard, HazardError
from gemmlab.simt.report.report import Report
from gemmlab.simt.report.trace import Access
from gemmlab.simt.syntax.source import UnsupportedError

__all__ = [
    "Access", "Hazard", "HazardError", "Report", "UnsupportedError", "last_report", "simulate",
]  # fmt: skip

"""The sets of kernels that are predicted and timed together, and what a name in them asks for."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.forecast.others.case import Case, cases

FIRST = (
    "black_scholes", "degrees", "gather", "histogram", "mandelbrot", "n_body", "reduction", "scan",
    "softmax", "sparse_product", "stencil", "transpose_naive", "transpose_tiled", "triad",
)  # fmt: skip
SECOND = (
    "bitonic", "block_scan", "column_sums", "convolution", "degrees_far", "dot", "floyd",
    "gather_far", "gather_near", "grey", "k_means", "layer_norm", "life", "matvec", "monte_carlo",
    "product64", "scatter", "sgemm_student", "sgemm_student:1024", "stencil_3d",
    "transpose_no_padding",
)  # fmt: skip
# Additions all over arrays of other sizes, for what decision 049 says of L2.
THIRD = "degrees_far:10000000", "degrees_far:24000000", "degrees_far:40000000"
SETS = {"first": FIRST, "second": SECOND, "third": THIRD}
# set -> what its files are called, before _predicted and _timed; both stay as they were written
FILES = {"first": "others", "second": "others_2", "third": "others_3"}


def asked(entry: str) -> Case:
    """The kernel of a name, at its own size or at one after a colon.

    >>> asked("sgemm_student").size, asked("sgemm_student:1024").size
    (4096, 1024)
    """
    name, _, size = entry.partition(":")
    if name not in cases():
        raise ValueError(f"kernel {name!r} is not one of {', '.join(cases())}")
    if not size:
        return cases()[name]
    if not (size.isdecimal() and int(size)):
        raise ValueError(f"size {size!r} of {name} is not a positive whole number")
    return replace(cases()[name], size=int(size))


def entry(case: Case) -> str:
    """The name that asks for a kernel at its size, which rows and tables have."""
    own = case.size == cases()[case.name].size
    return case.name if own else f"{case.name}:{case.size}"

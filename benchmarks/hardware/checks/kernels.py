"""What every kernel of the course asks memory for: Nsight Compute's counters and the simulator's.

A product of several tiles in each direction, with the tiling that the kernel chooses for it; the
launches before and after the kernel's own count too. The simulator sees a copy by `cp.async` as a
load and a store, `ldmatrix` as a load; the profiler has counters of their own for both.
"""

from collections.abc import Mapping
from fractions import Fraction
from functools import cache

from benchmarks.hardware.check import Check, Comparison, Measured
from benchmarks.hardware.profiler import NCU, profile
from gemmlab import Gemm, kernels, run
from gemmlab.compiled.forecast.rung_listings import usual
from gemmlab.device import Device
from gemmlab.here.detection import detect
from gemmlab.instructions import host
from gemmlab.instructions.typed import MLIR
from gemmlab.kernels import Kernel
from gemmlab.kernels.hashing import source_hash
from gemmlab.measure.backends import gpu
from gemmlab.tiling import Tiling

NAME = "kernels"
PRODUCT = Gemm(256, 256, 128)
# Instructions and wavefronts of shared memory are counted by what Nsight Compute adds to the code:
# the counters of the hardware also see what waits for others, such as the TMA.
EXECUTED = "smsp__sass_inst_executed_op"
WAVEFRONTS = "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op"
REQUESTS, SECTORS = (f"l1tex__t_{kind}_pipe_lsu_mem_global_op" for kind in ("requests", "sectors"))
METRICS = {
    "global_load_requests": [f"{REQUESTS}_ld"],
    "global_load_sectors": [f"{SECTORS}_ld"],
    "global_store_requests": [f"{REQUESTS}_st"],
    "global_store_sectors": [f"{SECTORS}_st"],
    "global_atomic_requests": [f"{REQUESTS}_red"],
    "global_atomic_sectors": [f"{SECTORS}_red"],
    "shared_load_requests": [f"{EXECUTED}_shared_ld", f"{EXECUTED}_ldsm"],
    "shared_store_requests": [f"{EXECUTED}_shared_st", f"{EXECUTED}_ldgsts"],
    "shared_load_wavefronts": [f"{WAVEFRONTS}_ld", f"{WAVEFRONTS}_ldsm"],
    "shared_store_wavefronts": [f"{WAVEFRONTS}_st", f"{WAVEFRONTS}_ldgsts"],
    "tensor_copy_bytes": ["l1tex__m_xbar2l1tex_read_bytes_mem_global_op_tma_ld"],
    "tensor_store_bytes": ["l1tex__m_l1tex2xbar_write_bytes_mem_global_op_tma_st"],
}
LEAST = (9, 0)  # compute capability that has them all
EACH_LOAD = ("shared_load_requests", "shared_load_wavefronts")
MERGED = "the compiler merges four neighbouring loads of As into one of 16 bytes a lane"
AHEAD = "one of 65 fragments that are loaded ahead is not loaded where no step follows"
# A warp copies from four lines of A, 4 bytes a lane; what fills a tile's end takes one wavefront.
LINES = "a copy of 4 bytes a lane takes a wavefront of shared memory for each line it reads"
HALVES = "eight halves are two loads of 8 bytes a lane, which touch the same sectors"
# As if a copy from eight lines, 64 bytes of each, took eight wavefronts and not four: half of them
# by Numba-CUDA, 7 of 8 by numba-cuda-mlir, at every launch as many. What decides is not known.
MORE = "copies of 16 bytes a lane take more wavefronts than stores to the same places"
# Compiled ÷ simulated, where that is not 1, and why.
COMPILED: Mapping[str, tuple[Mapping[str, Fraction], str]] = {
    "tiled": (dict(zip(EACH_LOAD, (Fraction(5, 8), Fraction(3, 4)), strict=True)), MERGED),
    "stream_k": (dict.fromkeys(EACH_LOAD, Fraction(64, 65)), AHEAD),
    **dict.fromkeys(
        ("mma_shared", "mma_swizzled"),
        (dict.fromkeys(("global_load_requests", "global_load_sectors"), Fraction(2)), HALVES),
    ),
}
# The same by numba-cuda-mlir, by which *stream_k* loads all of them.
COMPILED_BY_MLIR = {name: said for name, said in COMPILED.items() if name != "stream_k"}
# Measured ÷ compiled, of wavefronts of stores to shared memory, and why.
COPIED: Mapping[str, tuple[Fraction, str]] = {
    "pipelined": (Fraction(9, 5), LINES),
    "split_k": (Fraction(13, 7), LINES),
    "split_k_atomics": (Fraction(11, 5), LINES),
    "stream_k": (Fraction(17, 14), LINES),
    "mma_pipelined": (Fraction(8, 7), MORE),
}
COPIED_BY_MLIR = {**COPIED, "mma_pipelined": (Fraction(5, 4), MORE)}
# The profiler counts what comes to an SM. Of the bytes that a block copies half are of B, and come
# to two; the simulator counts them once, as L2 gives them.
RECEIVED = {"tma_multicast": Fraction(3, 2)}
RUNGS = *kernels.GPU, *kernels.HOPPER_CLUSTERS


def case(piece: str, device: Device) -> tuple[Kernel, Gemm, Tiling]:
    """A kernel with its product and its tiling."""
    kernel = kernels.get(piece)
    problem = usual(kernel, PRODUCT)
    return kernel, problem, kernel.choose(None, problem, device)


def pieces(device: Device) -> Mapping[str, str]:
    known = device.compute_capability >= LEAST
    reason = "" if known else "needs compute capability {}.{}".format(*LEAST)
    return {kernel.name: reason for kernel in RUNGS}


def launch(piece: str) -> None:
    kernel, problem, tiling = case(piece, detect())
    operands = problem.operands()
    gpu.Runner(kernel, problem, tiling, gpu.Matrices(problem)).compute(problem, operands)


def measure(piece: str, device: Device) -> Measured:
    launches = profile(NAME, piece, METRICS)
    told = {"counters": launches, "source_sha256": source_hash(kernels.get(piece))}
    return told | ({"compiler": MLIR} if host.package() == MLIR else {})


def simulated(piece: str, device: Device) -> Mapping[str, int]:
    """The simulator's counters of all launches of a kernel."""
    return _simulated(*case(piece, device))


@cache
def _simulated(kernel: Kernel, problem: Gemm, tiling: Tiling) -> Mapping[str, int]:
    return run(kernel, problem, backend="simulator", tiling=tiling).counters


def hardware(measured: Measured) -> dict[str, int]:
    """Measured counters, of all launches of a kernel."""
    return {name: sum(one[name] for one in measured["counters"]) for name in METRICS}


def compare(piece: str, measured: Measured, device: Device) -> Comparison:
    found = Comparison()
    kernel, counted = kernels.get(piece), simulated(piece, device)
    found.equal("hash of the source", measured["source_sha256"], source_hash(kernel))
    found.equal("launches", len(measured["counters"]), len(kernel.launches))
    mlir = measured.get("compiler") == MLIR
    compiled, copied = (COMPILED_BY_MLIR, COPIED_BY_MLIR) if mlir else (COMPILED, COPIED)
    differs = dict(compiled[piece][0]) if piece in compiled else {}
    if piece in copied:
        differs["shared_store_wavefronts"] = copied[piece][0]
    if piece in RECEIVED:
        differs["tensor_copy_bytes"] = RECEIVED[piece]
    for name, total in hardware(measured).items():
        found.equal(name, total, counted[name] * differs.get(name, 1))
    return found


CHECK = Check(
    NAME,
    "counters of the course's kernels: Nsight Compute's and the simulator's",
    pieces,
    measure,
    compare,
    tool=NCU,
    launch=launch,
    quick=("naive", "mma_swizzled", "tma_stored"),
)

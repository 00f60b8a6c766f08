"""Repetitions and provenance of timed runs, alike for the CPU and the GPU."""

from gemmlab.arguments import whole_number
from gemmlab.here.driver import stamp
from gemmlab.kernels.hashing import source_hash
from gemmlab.kernels.kernel import Kernel

DATA = "normal, seed 0"  # the operands of a run that was given none: `Gemm.operands()`
OWN_DATA = "given by the caller"
FEWEST, MOST = 5, 100
SECONDS = 0.3  # of timed runs


def repetitions(seconds: float, repeats: int | None) -> int:
    """Choose how often to time a run that takes `seconds`: `repeats` times where it is given."""
    if repeats is not None:
        return whole_number("repeats", repeats)
    return int(min(MOST, max(FEWEST, SECONDS / max(seconds, 1e-9))))


def provenance(kernel: Kernel, data: str = DATA) -> dict[str, str]:
    """Return the provenance known before a run starts: date, versions, data, hash of the source."""
    return {
        **stamp("date", "python", "numpy", "numba"),
        "data": data,
        "source_sha256": source_hash(kernel),
    }

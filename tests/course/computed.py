"""Values that the tables of sentences hold numbers against: records, predictions, counts."""

from gemmlab import Gemm, Tiling, device, predict, records

GPU = device("h200")
V100 = device("v100")
PEAK = GPU.peak_of("float32")


def cube(n: int, **formats: str) -> Gemm:
    """A product with three equal sizes."""
    return Gemm(n, n, n, **formats)


def square(side: int) -> Tiling:
    """A square tile with a thread for each element."""
    return Tiling.square(side)


def seconds(kernel, problem: Gemm, tiling: Tiling | None = None) -> float:
    """The recorded time of a kernel [s]."""
    return records.find(kernel, problem, tiling).seconds


def ms(kernel, problem: Gemm, tiling: Tiling | None = None) -> float:
    """The recorded time of a kernel [ms]."""
    return 1e3 * seconds(kernel, problem, tiling)


def us(kernel, problem: Gemm, tiling: Tiling | None = None) -> float:
    """The recorded time of a kernel [µs]."""
    return 1e6 * seconds(kernel, problem, tiling)


def tflops(kernel, problem: Gemm, tiling: Tiling | None = None) -> float:
    """The recorded speed of a kernel [TFLOP/s]."""
    return problem.flops / seconds(kernel, problem, tiling) / 1e12


def bound(kernel, problem: Gemm, tiling: Tiling | None = None) -> float:
    """The time of a kernel at best, predicted [s]."""
    return predict(problem, GPU, kernel, tiling).seconds


def counters(kernel, problem: Gemm, tiling: Tiling | None = None) -> dict[str, int]:
    """What a kernel counts, predicted."""
    return predict(problem, GPU, kernel, tiling).counters


def per_request(kernel, problem: Gemm, tiling: Tiling | None = None) -> float:
    """Sectors of a kernel's load request on average, predicted."""
    found = counters(kernel, problem, tiling)
    return found["global_load_sectors"] / found["global_load_requests"]

"""Answers to exercise 01.2."""

from gemmlab.course.ch01_what_is_gemm.q2_counts import (
    SIZES,
    SIZES_AND_BYTES,
    bytes_moved,
    flops,
    intensity,
)
from gemmlab.problem import Gemm
from tests.course.answers import Agrees, Wrong, edited, fooling, table

RIGHT = {
    "from the problem": (
        lambda m, n, k: Gemm(m, n, k).flops,
        lambda m, n, k, itemsize: (
            Gemm(m, n, k, dtype={2: "float16", 4: "float32", 8: "float64"}[itemsize]).bytes
        ),
        lambda m, n, k, itemsize: (
            Gemm(m, n, k, dtype={2: "float16", 4: "float32", 8: "float64"}[itemsize]).intensity
        ),
    ),
    "sums": (
        lambda m, n, k: sum(2 * k for _ in range(m)) * n,
        lambda m, n, k, itemsize: sum(itemsize * x * y for x, y in ((m, k), (k, n), (m, n))),
        lambda m, n, k, itemsize: 2 * m * n * k / itemsize / (m * k + k * n + m * n),
    ),
    "reciprocals": (
        lambda m, n, k: m * n * k + m * n * k,
        lambda m, n, k, itemsize: itemsize * m * n * k * (1 / m + 1 / n + 1 / k),
        lambda m, n, k, itemsize: 2 / (itemsize * (1 / m + 1 / n + 1 / k)),
    ),
}


def _flops(misconception, diagnosis, new):
    answer = edited(flops, ("2 * m * n * k", new))
    return Wrong(misconception, diagnosis, (answer, bytes_moved, intensity))


def _bytes(misconception, diagnosis, new):
    answer = edited(bytes_moved, ("itemsize * (m * k + k * n + m * n)", new))
    return Wrong(misconception, diagnosis, (flops, answer, intensity))


def _intensity(misconception, diagnosis, new):
    right = "flops(m, n, k) / bytes_moved(m, n, k, itemsize)"
    return Wrong(misconception, diagnosis, (flops, bytes_moved, edited(intensity, (right, new))))


WRONG = {
    "mnk": _flops("an FMA is one operation", "fma-counted-once", "m * n * k"),
    "2k - 1": _flops("the first sum is free", "one-addition-fewer", "m * n * (2 * k - 1)"),
    "faces": _flops("each element costs 2", "sums-of-sizes", "2 * (m * k + k * n + m * n)"),
    "elements": _bytes("an element is a byte", "elements-not-bytes", "m * k + k * n + m * n"),
    "bits": _bytes(
        "itemsize is in bits", "bits-not-bytes", "8 * itemsize * (m * k + k * n + m * n)"
    ),
    "every load": _bytes(
        "nothing is reused", "every-load-counted", "itemsize * (2 * m * n * k + m * n)"
    ),
    "every access": _bytes(
        "nothing is reused, C neither", "every-load-counted-c-too", "itemsize * 3 * m * n * k"
    ),
    "no result": _bytes("writing is free", "result-forgotten", "itemsize * (m * k + k * n)"),
    "C twice": _bytes(
        "C is read before it is written", "c-read-as-well", "itemsize * (m * k + k * n + 2 * m * n)"
    ),
    "upside down": _intensity(
        "byte per FLOP", "upside-down", "bytes_moved(m, n, k, itemsize) / flops(m, n, k)"
    ),
    "rounded": _intensity(
        "// divides", "rounded", "flops(m, n, k) // bytes_moved(m, n, k, itemsize)"
    ),
    "half of the operations": _intensity(
        "an FMA is one operation", "fma-counted-once", "m * n * k / bytes_moved(m, n, k, itemsize)",
    ),
    "nothing": _intensity("a function may return nothing", "wrong-type", "None and n"),
    "division by zero": _intensity("k may be 0", "raises", "1 / (k - k)"),
    "a cube": _intensity("intensity is the side", "wrong-values", "n * n * n * 7"),
    "still a gap": _intensity("two of three are enough", "not-attempted", "..."),
}  # fmt: skip


FOOLING = {
    "flops by heart": fooling(
        "the cases are in the package", "known-cases-only", table(flops, SIZES), bytes_moved,
        intensity,
    ),
    "bytes by heart": fooling(
        "the cases are in the package", "known-cases-only", flops,
        table(bytes_moved, SIZES_AND_BYTES), intensity,
    ),
    "nothing is larger than 4096": fooling(
        "no layer is larger", "right-in-part",
        lambda m, n, k: flops(min(m, 4096), n, k), bytes_moved, intensity,
    ),
    "two and four bytes": fooling(
        "there are two formats", "right-in-part", flops,
        lambda m, n, k, s: bytes_moved(m, n, k, 2 if s == 2 else 4), intensity,
    ),
    "equals everything": fooling(
        "the result compares itself", "wrong-type", lambda m, n, k: Agrees(1), bytes_moved,
        intensity,
    ),
    "beyond every float": fooling(
        "large is large enough", "wrong-values", lambda m, n, k: 10**400, bytes_moved, intensity
    ),
    "three times": fooling(
        "tripled", "by-a-factor", lambda m, n, k: 6 * m * n * k, bytes_moved, intensity
    ),
    "one more": fooling(
        "the store counts as an operation", "by-a-constant", lambda m, n, k: 2 * m * n * k + 1,
        bytes_moved, intensity,
    ),
    "itemsize first": fooling(
        "the order of parameters is free", "arguments-exchanged", flops,
        lambda itemsize, m, n, k: bytes_moved(m, n, k, itemsize), intensity,
    ),
    "nan": fooling(
        "NaN is a number", "not-finite", flops, bytes_moved, lambda m, n, k, s: float("nan")
    ),
    "an array": fooling(
        "an array is a number", "wrong-type", lambda m, n, k: [2 * m * n * k], bytes_moved,
        intensity,
    ),
}  # fmt: skip

"""Answers to exercise 02.4."""

from gemmlab.course.ch02_intensity_and_limiters.q4_implicit_gemm import (
    CASES,
    moved_bytes,
    operations,
    unrolled_bytes,
)
from gemmlab.model.layers import Convolution
from tests.course.answers import Agrees, Wrong, edited, fooling, table


def _layer(images, channels, side, filters, window):
    return Convolution(images, channels, side, side, filters, (window, window), padding=window // 2)


def _by_loops(images, channels, side, filters, window):
    fmas = 0
    for _ in range(images):
        for _ in range(filters):
            fmas += side**2 * channels * window**2
    return 2 * fmas


RIGHT = {
    "from the layer": (
        lambda *layer: _layer(*layer).forward.flops,
        lambda *layer: _layer(*layer).bytes,
        lambda *layer: _layer(*layer).unrolled_bytes,
    ),
    "by loops": (
        _by_loops,
        lambda i, c, s, f, w: sum((2 * i * c * s**2, 2 * i * f * s**2, 2 * f * c * w**2)),
        lambda i, c, s, f, w: i * s**2 * (2 * c * w**2),
    ),
    "from m, n and k": (
        lambda i, c, s, f, w: 2 * (i * s * s) * f * (c * w * w),
        lambda i, c, s, f, w: 2.0 * i * s * s * (c + f) + 2.0 * f * c * w * w,
        lambda i, c, s, f, w: 2 * (i * s * s) * (c * w * w),
    ),
}

OPERATIONS = "2 * places * filters * channels * window * window"
MOVED = "2 * (places * channels + weights + places * filters)"
UNROLLED = "2 * images * side * side * channels * window * window"


def _operations(misconception, diagnosis, *edits):
    answer = edited(operations, *edits)
    return Wrong(misconception, diagnosis, (answer, moved_bytes, unrolled_bytes))


def _moved(misconception, diagnosis, *edits):
    answer = edited(moved_bytes, *edits)
    return Wrong(misconception, diagnosis, (operations, answer, unrolled_bytes))


def _unrolled(misconception, diagnosis, *edits):
    answer = edited(unrolled_bytes, *edits)
    return Wrong(misconception, diagnosis, (operations, moved_bytes, answer))


WRONG = {
    "FMAs": _operations("an FMA is one operation", "fma-counted-once", ("2 * places", "places")),
    "a line for a window": _operations(
        "a window has window pixels", "window-not-squared", ("window * window", "window")
    ),
    "a line for an image": _operations(
        "an image has side pixels", "side-not-squared", ("side * side", "side")
    ),
    "one channel": _operations("images are grey", "channels-forgotten", ("* channels ", "")),
    "one filter": _operations("filters work at once", "filters-forgotten", ("* filters ", "")),
    "one image": _operations("a layer sees an image", "images-forgotten", ("images * ", "")),
    "no border": _operations(
        "a window lies inside", "border-left-out",
        ("images * side * side", "images * max(side - window + 1, 0) ** 2"),
    ),
    "unrolled": _moved(
        "a product reads its operand", "unrolled-counted",
        ("places * channels +", "places * channels * window * window +"),
    ),
    "no result": _moved("writing is free", "result-forgotten", (" + places * filters", "")),
    "no weights": _moved("weights are small", "weights-forgotten", (" + weights", "")),
    "weights again": _moved(
        "each image brings its weights", "weights-for-each-image",
        ("+ weights", "+ images * weights"),
    ),
    "weights of one channel": _moved(
        "a filter has window² weights", "channels-forgotten", ("filters * channels *", "filters *")
    ),
    "result of one filter": _moved(
        "the result is as large as an image of one channel", "filters-forgotten",
        ("places * filters)", "places)"),
    ),
    "zeros stored": _moved(
        "padding makes the image larger", "border-stored",
        ("places * channels +", "images * (side + window - 1) ** 2 * channels +"),
    ),
    "elements": _moved("an element is a byte", "elements-not-bytes", ("2 * (", "(")),
    "float32": _moved("a number has four bytes", "four-bytes", ("2 * (", "4 * (")),
    "windows inside": _unrolled(
        "a window lies inside", "border-left-out",
        ("side * side", "max(side - window + 1, 0) ** 2"),
    ),
    "not unrolled": _unrolled(
        "the matrix is the image", "not-unrolled", (" * window * window", "")
    ),
    "for each filter": _unrolled(
        "each filter has its windows", "for-each-filter",
        ("unrolled_bytes(images, channels, side, filters, window):",
         "unrolled_bytes(images, channels, side, filters, window):\n    images *= filters"),
    ),
    "unrolled elements": _unrolled(
        "an element is a byte", "elements-not-bytes", ("2 * images", "images")
    ),
    "still a gap": _unrolled("two of three are enough", "not-attempted", (UNROLLED, "...")),
    "unknown name": _unrolled("w is the window", "raises", ("window * window", "w * w")),
    "text": _operations("text is a number", "wrong-type", (OPERATIONS, f"str({OPERATIONS})")),
    "a cube": _operations("work is volume", "wrong-values", (OPERATIONS, "7 + side**3 * 11")),
}  # fmt: skip

FOOLING = {
    "256 images": fooling(
        "no batch is larger", "known-cases-only",
        lambda i, c, s, f, w: operations(min(i, 256), c, s, f, w), moved_bytes, unrolled_bytes,
    ),
    "operations by heart": fooling(
        "the cases are in the package", "known-cases-only", table(operations, CASES), moved_bytes,
        unrolled_bytes,
    ),
    "bytes by heart": fooling(
        "the cases are in the package", "known-cases-only", operations, table(moved_bytes, CASES),
        unrolled_bytes,
    ),
    "equals everything": fooling(
        "the result compares itself", "wrong-type", operations, moved_bytes,
        lambda *layer: Agrees(1),
    ),
    "the last one copied": fooling(
        "one formula is enough", "wrong-values", operations, moved_bytes, moved_bytes
    ),
    "windows of 3": fooling(
        "windows are 3 by 3", "right-in-part", lambda i, c, s, f, w: 18 * i * s * s * f * c,
        moved_bytes, unrolled_bytes,
    ),
}  # fmt: skip

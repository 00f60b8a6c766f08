"""Exercise 02.4: a convolution's operations and bytes, with and without its unrolled operand."""

from typing import Any

from gemmlab.course.judging import Diagnosis, Finding, Task, drawing, functions_on_trial
from gemmlab.formats import number_format

SIZE = number_format("float16").bytes
# (images, channels, side, filters, window), smallest first.
CASES = (
    (1, 1, 1, 1, 1),
    (1, 1, 2, 1, 1),
    (1, 2, 3, 5, 1),
    (2, 3, 5, 4, 3),
    (1, 3, 8, 16, 5),
    (4, 16, 7, 6, 3),
    (32, 64, 56, 128, 3),
)


def operations(images, channels, side, filters, window):
    """Operations of the layer [FLOP]."""
    # [answer] return ...
    places = images * side * side
    return 2 * places * filters * channels * window * window
    # [end]


def moved_bytes(images, channels, side, filters, window):
    """Bytes of image, weights and result in float16, each moved once [B]."""
    # [answer] return ...
    places = images * side * side
    weights = filters * channels * window * window
    return 2 * (places * channels + weights + places * filters)
    # [end]


def unrolled_bytes(images, channels, side, filters, window):
    """Bytes of the unrolled image in float16 [B]."""
    # [answer] return ...
    return 2 * images * side * side * channels * window * window
    # [end]


def _inner(side: int, window: int) -> int:
    """The places of a row where the whole window lies inside."""
    return max(side - window + 1, 0)


OPERATIONS_INSTEAD = {
    "fma-counted-once": lambda i, c, s, f, w: i * s * s * f * c * w * w,
    "window-not-squared": lambda i, c, s, f, w: 2 * i * s * s * f * c * w,
    "side-not-squared": lambda i, c, s, f, w: 2 * i * s * f * c * w * w,
    "channels-forgotten": lambda i, c, s, f, w: operations(i, 1, s, f, w),
    "filters-forgotten": lambda i, c, s, f, w: operations(i, c, s, 1, w),
    "images-forgotten": lambda i, c, s, f, w: operations(1, c, s, f, w),
    "border-left-out": lambda i, c, s, f, w: operations(i, c, _inner(s, w), f, w),
}
BYTES_INSTEAD = {
    "unrolled-counted": lambda i, c, s, f, w: (
        unrolled_bytes(i, c, s, f, w) + SIZE * (f * c * w * w + i * f * s * s)
    ),
    "result-forgotten": lambda i, c, s, f, w: SIZE * (i * c * s * s + f * c * w * w),
    "weights-forgotten": lambda i, c, s, f, w: SIZE * i * s * s * (c + f),
    "weights-for-each-image": lambda i, c, s, f, w: i * moved_bytes(1, c, s, f, w),
    "channels-forgotten": lambda i, c, s, f, w: SIZE * (i * c * s * s + f * w * w + i * f * s * s),
    "filters-forgotten": lambda i, c, s, f, w: SIZE * (i * c * s * s + f * c * w * w + i * s * s),
    "border-stored": lambda i, c, s, f, w: (
        SIZE * (i * c * (s + w - 1) ** 2 + f * c * w * w + i * f * s * s)
    ),
    "elements-not-bytes": lambda i, c, s, f, w: moved_bytes(i, c, s, f, w) // SIZE,
    "four-bytes": lambda i, c, s, f, w: 2 * moved_bytes(i, c, s, f, w),
}
UNROLLED_INSTEAD = {
    "elements-not-bytes": lambda i, c, s, f, w: unrolled_bytes(i, c, s, f, w) // SIZE,
    "window-not-squared": lambda i, c, s, f, w: SIZE * i * s * s * c * w,
    "not-unrolled": lambda i, c, s, f, w: SIZE * i * s * s * c,
    "for-each-filter": lambda i, c, s, f, w: unrolled_bytes(i, c, s, f, w) * f,
    "images-forgotten": lambda i, c, s, f, w: unrolled_bytes(1, c, s, f, w),
    "channels-forgotten": lambda i, c, s, f, w: unrolled_bytes(i, 1, s, f, w),
    "border-left-out": lambda i, c, s, f, w: SIZE * i * _inner(s, w) ** 2 * c * w * w,
    "four-bytes": lambda i, c, s, f, w: 2 * unrolled_bytes(i, c, s, f, w),
}


def _drawn_anew() -> list[tuple[int, ...]]:
    """A layer of usual sizes, then one for each parameter that has it larger than any case."""
    rng = drawing.generator()
    images, channels, side, filters = (int(x) for x in rng.integers(3, 60, 4))
    drawn = [(images, channels, side + 7, filters, int(rng.choice((3, 5, 7))))]
    for place, least in enumerate((5_000, 3_000, 700, 2_000, 11)):
        layer = [*(int(x) for x in rng.integers(2, 6, 2)), 40, int(rng.integers(2, 6)), 3]
        layer[place] = least + 2 * int(rng.integers(0, least // 4))
        drawn.append(tuple(layer))
    return drawn


def judge(count: Any, moved: Any, unrolled: Any) -> Finding:
    """Try the three functions in turn; the first that is wrong decides."""
    fresh = _drawn_anew()
    found = (
        functions_on_trial.judge(
            "operations", count, CASES, operations, OPERATIONS_INSTEAD, fresh=fresh
        )
        or functions_on_trial.judge(
            "moved_bytes", moved, CASES, moved_bytes, BYTES_INSTEAD, fresh=fresh
        )
        or functions_on_trial.judge(
            "unrolled_bytes", unrolled, CASES, unrolled_bytes, UNROLLED_INSTEAD, fresh=fresh
        )
    )
    if found is not None:
        return found
    return Finding("passed", (("Checked", f"{len(CASES)} layers and others drawn anew"),))


TASK = Task(
    name="02.4",
    title="A convolution is a product, too",
    section="chapter 02, Are attention and convolution products, too?",
    asked="operations, moved_bytes and unrolled_bytes(images, channels, side, filters, window) of "
    "a convolution in float16 whose result is as large as its image.",
    prompt="""
    A convolutional layer slides `filters` windows over `images` images of side×side pixels with
    `channels` numbers each. At each place a filter multiplies the window×window pixels around it,
    all channels, with its weights, and adds up: one number. Borders are padded with zeros, so that
    the result has as many places as the image; count products with these zeros, too.

    Write three functions of `(images, channels, side, filters, window)`, all in float16:

    - `operations`: two for each FMA
    - `moved_bytes`: image, weights and result, each moved once: an *implicit* GEMM
    - `unrolled_bytes`: the *unrolled* image, the matrix that has a row for each place and in it
      all the numbers that its window covers

    Check them with `q4.check(operations, moved_bytes, unrolled_bytes)`.
    """,
    judge=judge,
    answers=(operations, moved_bytes, unrolled_bytes),
    diagnoses={
        "not-attempted": Diagnosis(
            "A function still returns the gap of the skeleton.",
            "How many places has the result, and how many FMAs does a filter need at one of them?",
            "operations = 2 · places · filters · …",
        ),
        "fma-counted-once": Diagnosis(
            "A multiply-add is counted as one operation; it is two.",
            "What two operations does acc += a * b consist of?",
            "operations = … · places · filters · channels · window²",
        ),
        "window-not-squared": Diagnosis(
            "A window is taken for a line; it has window rows of window pixels.",
            "How many pixels does a window of 3×3 cover?",
            "… · channels · window …",
        ),
        "side-not-squared": Diagnosis(
            "An image is taken for a line; it has side rows of side pixels.",
            "How many places has an image of side 5?",
            "places = images · …",
        ),
        "channels-forgotten": Diagnosis(
            "A pixel has `channels` numbers, and a filter has weights for each of them.",
            "How many numbers lie under a window of 3×3 if each pixel has 64 channels?",
            "numbers under a window = … · window²",
        ),
        "filters-forgotten": Diagnosis(
            "Each filter makes a number of its own at each place.",
            "How many numbers does the result have at one place?",
            "numbers of the result = places · …",
        ),
        "images-forgotten": Diagnosis(
            "All images of the batch are to be counted.",
            "Which of the five parameters does your formula not name?",
            "places = … · side²",
        ),
        "border-left-out": Diagnosis(
            "Only places are counted where the whole window lies inside; borders are padded.",
            "How large is the result, compared with the image?",
            "places = images · side²",
        ),
        "border-stored": Diagnosis(
            "The zeros around each image are counted; they are added on the way and lie nowhere in "
            "memory.",
            "How many numbers of an image does DRAM have to deliver?",
            "image = images · side² · …",
        ),
        "unrolled-counted": Diagnosis(
            "The unrolled image is counted; an implicit GEMM reads each pixel once.",
            "How many numbers does the image itself have?",
            "image = images · side² · …",
        ),
        "result-forgotten": Diagnosis(
            "Writing the result is left out.",
            "What leaves the chip, and how many numbers is it?",
            "bytes = 2 · (image + weights + …)",
        ),
        "weights-forgotten": Diagnosis(
            "Reading the weights is left out.",
            "How many weights has a filter, and how many filters are there?",
            "bytes = 2 · (image + … + result)",
        ),
        "weights-for-each-image": Diagnosis(
            "The weights are counted for each image; the batch shares them.",
            "Which of the three arrays grows with the number of images, and which does not?",
            "bytes = 2 · (images · … + weights + images · …)",
        ),
        "elements-not-bytes": Diagnosis(
            "Elements are counted; one of float16 has two bytes.",
            "How many bytes has an element of float16?",
            "bytes = … · (elements)",
        ),
        "four-bytes": Diagnosis(
            "Each element is counted with four bytes; one of float16 has two.",
            "How many bytes has an element of float16?",
            "bytes = … · (elements)",
        ),
        "not-unrolled": Diagnosis(
            "That is the image as it is; unrolled, each pixel stands in the row of each place "
            "whose window covers it.",
            "How many numbers has one row of the unrolled image?",
            "bytes = 2 · places · channels · …",
        ),
        "for-each-filter": Diagnosis(
            "The unrolled image is counted once for each filter; all filters read the same one.",
            "In the product, which side of C is the number of filters?",
            "bytes = 2 · places · channels · window²",
        ),
    },
    praise="The unrolled image is an operand that nobody needs to store: each of its elements is "
    "found in the image when it is loaded. The intensity is that of the implicit product.",
)

"""Small kernels of which the two compilers may make different things, and what may come out."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import numpy as np

from gemmlab import cuda

LANES = 32
RIGHT = "right"
ROUNDING, SILENT, LACKS, SAID = "rounding", "silent", "refused", "errors"


@dataclass(frozen=True)
class Probe:
    """A kernel of two arrays, x and y, that a warp executes, and what may come out.

    results : names of results, and y as each leaves it; where there is one, it is the right one
    options : of the kernel's compilation
    """

    topic: str
    what: str
    kernel: Callable
    x: np.ndarray
    results: Mapping[str, np.ndarray]
    options: Mapping[str, Any] = field(default_factory=dict)


# ------------------------------------------------------------------------- what is compiled


def fused(x, y):
    i = cuda.threadIdx.x
    y[i] = x[i] * x[i] + x[(i + 1) % 32]


def divided(x, y):
    i = cuda.threadIdx.x
    y[i] = x[i] / x[31 - i]


def with_a_number(x, y):
    i = cuda.threadIdx.x
    y[i] = x[i] * 1.1


def squared(x, y):
    i = cuda.threadIdx.x
    y[i] = x[i] ** 2


def multiplied(x, y):
    i = cuda.threadIdx.x
    y[i] = x[i] * x[i]


def rounded(x, y):
    i = cuda.threadIdx.x
    y[i] = round(x[i])


def floored(x, y):
    i = cuda.threadIdx.x
    y[i] = x[i] // np.int32(4) + 100 * (x[i] % np.int32(4))


def negative_step(x, y):
    i = cuda.threadIdx.x
    y[i] = 0
    for step in (-1, 0, 1):
        if 0 < i < 31:
            y[i] += x[i + step]


def shuffled(x, y):
    i = cuda.threadIdx.x
    y[i] = cuda.shfl_down_sync(0xFFFFFFFF, x[i], 1)


def stored_by_index(x, y):
    y[x[cuda.threadIdx.x]] = cuda.threadIdx.x


def counted_by_index(x, y):
    cuda.atomic.add(y, x[cuda.threadIdx.x], 1)


def beyond_the_end(x, y):
    y[cuda.threadIdx.x] = x[-4:100].size


def every_second(x, y):
    y[cuda.threadIdx.x] = x[:31:2].size


def by_a_condition(x, y):
    part = cuda.shared.array(32, np.int32)
    i = cuda.threadIdx.x
    part[i] = 0
    cuda.syncthreads()
    cuda.atomic.add(part, (2 if -2 <= 1 < 1 else 3) % 32, 1)
    cuda.syncthreads()
    y[i] = part[i]


def enumerated(x, y):
    for i, value in enumerate((x[0], x[1])):
        y[i] = value


def divided_with_rest(x, y):
    i = cuda.threadIdx.x
    y[i], rest = divmod(int(x[i]), 3)
    y[i] += 100 * rest


def least_of_three(x, y):
    i = cuda.threadIdx.x
    y[i] = min(x[i], x[31 - i], x[(i + 1) % 32])


def fenced(x, y):
    i = cuda.threadIdx.x
    y[i] = 1
    cuda.threadfence()
    y[i] = x[i]


def lanes_before(x, y):
    i = cuda.threadIdx.x
    y[i] = cuda.popc(cuda.lanemask_lt()) + x[i]


def letter(x, y):
    i = cuda.threadIdx.x
    y[i] = x[i] + ord("b")


class State(IntEnum):
    """Two states with names."""

    OFF = 0
    ON = 1


def named(x, y):
    i = cuda.threadIdx.x
    y[i] = State.OFF
    if i > 3:
        y[i] = State.ON


def pairs(x, y):
    i = cuda.threadIdx.x
    y[i] = 0
    for factor, more in ((1, 5), (2, 0)):
        y[i] += factor * x[i] + more


def second_rows(x, y):
    tile = cuda.shared.array((4, 32), np.float32)
    i = cuda.threadIdx.x
    for row in range(4):
        tile[row, i] = row
    cuda.syncthreads()
    half = tile[::2]
    y[i] = x[i] + half[1, i]


def undefined(x, y):
    y[0] = nowhere(x)  # noqa: F821  # that is the question


def no_such_function(x, y):
    y[0] = cuda.no_such_function(x[0])


def of_a_dictionary(x, y):
    y[0] = {0: x[0]}[0]


def of_two_types(x, y):
    value = (x[0], 1) if x[0] > 0 else 2
    y[0] = value


def of_a_word(x, y):
    y[0] = "one"


def of_an_array(x, y):
    y[0] = x


def returned(x, y):
    return x[0]


# ------------------------------------------------------------------------------- the probes


def numbers(dtype: Any) -> np.ndarray:
    """Positive numbers of which products and quotients are not exact."""
    return np.random.default_rng(0).uniform(0.5, 2, LANES).astype(dtype)


def _rounding() -> Iterator[Probe]:
    x, wide = numbers(np.float32), numbers(np.float32).astype(np.float64)
    whole = np.arange(-16, 16, dtype=np.int32)
    big = np.full(LANES, 100_000, np.int32)
    product = {
        "one rounding": wide * wide + np.roll(wide, -1),
        "two roundings": x * x + np.roll(x, -1),
    }
    yield Probe(ROUNDING, "`a * b + c`, float32", fused, x, _in(np.float32, product))
    quotient = {"to the nearest": wide / wide[::-1]}
    yield Probe(ROUNDING, "`a / b`, float32", divided, x, _in(np.float32, quotient))
    yield Probe(
        ROUNDING, "`a / b`, float32, `fastmath=True`", divided, x, _in(np.float32, quotient),
        {"fastmath": True},
    )  # fmt: skip
    scaled = {"in float64": wide * 1.1, "in float32": x * np.float32(1.1)}
    yield Probe(ROUNDING, "`1.1 * a`, float32", with_a_number, x, _in(np.float64, scaled))
    yield Probe(ROUNDING, "`a ** 2`, float32", squared, x, _in(np.float32, {RIGHT: wide * wide}))
    yield Probe(
        ROUNDING, "`i * i` beyond 31 bits, int32", multiplied, big,
        _in(np.int64, {"64 bits": big.astype(np.int64) ** 2, "32 bits": big * big}),
    )  # fmt: skip
    quarters = np.arange(-16, 16) / 4
    rounds = {"halves to even": np.round(quarters)}
    yield Probe(ROUNDING, "`round(a)`, float64", rounded, quarters, _in(np.float64, rounds))
    floors = {"down": whole // 4 + 100 * (whole % 4)}
    yield Probe(ROUNDING, "`i // 4` and `i % 4` below 0", floored, whole, _in(np.int32, floors))


def _silent() -> Iterator[Probe]:
    x, third = np.arange(LANES), np.arange(LANES) + 1 / 3
    high = np.arange(255, 223, -1).astype(np.uint8)
    sums = np.where((x > 0) & (x < 31), 3 * x, 0)
    stored = np.r_[np.zeros(224, np.int32), x[::-1]]
    counted = np.r_[np.zeros(224, np.int32), np.ones(LANES, np.int32)]
    atomic = np.where(x == 3, LANES, 0)
    for what, kernel, given, right, dtype in (
        ("`for step in (-1, 0, 1)`", negative_step, x, sums, np.int64),
        ("`shfl_down_sync` of float64", shuffled, third, np.r_[third[1:], third[31]], np.float64),
        ("`y[i]` with `i` of uint8", stored_by_index, high, stored, np.int32),
        ("`atomic.add(y, i, 1)` with `i` of uint8", counted_by_index, high, counted, np.int32),
        ("`x[-4:100].size`", beyond_the_end, x, np.full(LANES, 4), np.int64),
        ("`x[:31:2].size`", every_second, x, np.full(LANES, 16), np.int64),
        ("a shared atomic at `a if c else b`", by_a_condition, x, atomic, np.int32),
    ):
        yield Probe(SILENT, what, kernel, given, _in(dtype, {RIGHT: right}))


def _refused() -> Iterator[Probe]:
    x = np.arange(LANES, dtype=np.float32)
    after, before = np.roll(x, -1), np.arange(LANES)
    first = np.where(x == 1, 1, 0)
    for what, kernel, right in (
        ("`enumerate`", enumerated, first),
        ("`divmod`", divided_with_rest, x // 3 + 100 * (x % 3)),
        ("`min` and `max` of three", least_of_three, np.minimum(np.minimum(x, x[::-1]), after)),
        ("`cuda.threadfence`", fenced, x),
        ("`cuda.lanemask_lt`", lanes_before, x + before),
        ("`ord` of a letter", letter, x + ord("b")),
        ("pairs of numbers in a tuple", pairs, 3 * x + 5),
        ("`tile[::2]` of a shared array", second_rows, x + 2),
    ):
        yield Probe(LACKS, what, kernel, x, _in(np.float32, {RIGHT: right}))
    member = _in(np.int64, {RIGHT: before > 3})
    yield Probe(LACKS, "a member of an enumeration in an array", named, x, member)


def _said() -> Iterator[Probe]:
    x = np.arange(LANES, dtype=np.float32)
    for what, kernel in (
        ("a name that is not there", undefined),
        ("a name that `cuda` has not", no_such_function),
        ("a dictionary", of_a_dictionary),
        ("a variable of two types", of_two_types),
        ("a word in an array of numbers", of_a_word),
        ("an array in an array of numbers", of_an_array),
        ("a kernel that returns a value", returned),
    ):
        yield Probe(SAID, what, kernel, x, _in(np.float32, {"taken": x}))


def _in(dtype: Any, results: Mapping[str, Any]) -> dict[str, np.ndarray]:
    return {name: np.asarray(result).astype(dtype) for name, result in results.items()}


PROBES = (*_rounding(), *_silent(), *_refused(), *_said())

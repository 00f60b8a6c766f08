"""Exercise 01.4: the smallest batch that makes a linear layer limited by arithmetic."""

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

from gemmlab.course.judging import Diagnosis, Finding, Task, drawing, functions_on_trial
from gemmlab.device import Device, device
from gemmlab.formats import number_format
from gemmlab.model.layers import linear

DTYPE = "float16"
LAYERS = ((128, 64), (1024, 1024), (4096, 1024), (4096, 4096), (1000, 2000))
DEVICES = ("v100", "t4", "a100_80gb", "h200")
EDGE = 1e-3  # so that a rounding error in an answer's own algebra cannot change its result
LARGEST = 2000  # batch, within reach of an answer that counts up
NARROW = (276, 908, device("h200"))  # only just wide enough: it takes a batch of 7,880
CASES = (*((o, i, device(d)) for o, i in LAYERS for d in DEVICES), NARROW)


def batch(outputs, inputs, device):
    """The smallest batch limited by arithmetic in float16, or None."""
    # [answer] return ...
    ratio = device.ops_per_byte("float16")
    # The intensity grows with the batch, towards that of a product with an endless side.
    if linear(outputs, inputs, 10**12).intensity < ratio:
        return None
    low, high = 0, 10**12  # too small, large enough
    while high - low > 1:
        middle = (low + high) // 2
        if linear(outputs, inputs, middle).intensity < ratio:
            low = middle
        else:
            high = middle
    return high
    # [end]


def bound(
    outputs: int,
    inputs: int,
    target: Device,
    *,
    flop: int = 2,
    itemsize: int = number_format(DTYPE).bytes,
    activations: int = 1,
    results: int = 1,
    dtype: str = DTYPE,
) -> Fraction | None:
    """The batch b at which 2·o·i·b / (s·(o·i + i·b + o·b)) equals peak / bandwidth, or None.

    The options leave out or change one term, as a wrong derivation does.
    """
    ratio = Fraction(target.peak_of(dtype)) / Fraction(target.dram_bandwidth)
    bytes_per_b = itemsize * (activations * inputs + results * outputs)
    slope = flop * outputs * inputs - ratio * bytes_per_b
    return ratio * itemsize * outputs * inputs / slope if slope > 0 else None


def _smallest(**options: Any) -> Callable[[int, int, Device], int | None]:
    def smallest(outputs: int, inputs: int, target: Device) -> int | None:
        exact = bound(outputs, inputs, target, **options)
        return None if exact is None else math.ceil(exact)

    return smallest


reference = _smallest()


def _of(name: str) -> Callable[[int, int, Device], int | None]:
    return lambda outputs, inputs, target: reference(outputs, inputs, device(name))


def _fraction(outputs: int, inputs: int, target: Device) -> float | None:
    exact = bound(outputs, inputs, target)
    return None if exact is None else float(exact)


def _floor(outputs: int, inputs: int, target: Device) -> int | None:
    exact = bound(outputs, inputs, target)
    return None if exact is None else math.floor(exact)


INSTEAD = {
    "rounded-down": _floor,
    "not-rounded": _fraction,
    "result-forgotten": _smallest(results=0),
    "inputs-forgotten": _smallest(activations=0),
    "weights-only": _smallest(activations=0, results=0),
    "elements-not-bytes": _smallest(itemsize=1),
    "factor-of-two": _smallest(flop=1),  # the same as _smallest(itemsize=4)
    "peak-of-float32": _smallest(dtype="float32"),
    **{f"device-ignored-{name}": _of(name) for name in DEVICES},
}


def _drawn_anew() -> list[tuple[int, int, Device]]:
    """Two layers whose batch is not on the edge of the next whole number."""
    rng, found = drawing.generator(), []
    while len(found) < 2:
        case = (*(int(x) for x in rng.integers(512, 8192, 2)), device(str(rng.choice(DEVICES))))
        exact = bound(*case)
        if exact is not None and abs(float(exact) - round(exact)) > EDGE and exact < LARGEST:
            found.append(case)
    return found


def judge(answer: Any) -> Finding:
    """Try every layer on every device."""
    found = functions_on_trial.judge(
        "batch", answer, CASES, reference, INSTEAD,
        lambda value: value.name if isinstance(value, Device) else str(value), _drawn_anew(),
    )  # fmt: skip
    if found is None:
        text = f"{len(LAYERS) + 1} layers on {', '.join(DEVICES)}"
        return Finding("passed", (("Checked", text),))
    if found.diagnosis.startswith("device-ignored"):
        return replace(found, diagnosis="device-ignored")
    gives_up = found.details.get("case") == NARROW and found.details.get("got", 0) is None
    return replace(found, diagnosis="gives-up") if gives_up else found


TASK = Task(
    name="01.4",
    title="The batch that fills the arithmetic units",
    section="chapter 01, Arithmetic or DRAM?",
    asked="batch(outputs, inputs, device) is the smallest batch for which a linear layer in "
    "float16 reaches the device's FLOP per byte; None where no batch does.",
    prompt="""
    A linear layer multiplies weights (outputs×inputs) by inputs (inputs×batch). It is limited by
    arithmetic, not by memory, once its intensity reaches the device's `ops_per_byte("float16")`.

    Write `batch(outputs, inputs, device)`: the smallest such batch as a whole number, or `None`
    where no batch is large enough. Each matrix moves once, in float16. Derive a formula, or search:
    `linear(outputs, inputs, batch).intensity` of `gemmlab.model.layers` is there to be called.

    `q4.check(batch)` asks for several layers on several devices.
    """,
    judge=judge,
    answers=(batch,),
    diagnoses={
        "not-attempted": Diagnosis(
            "The skeleton is unchanged.",
            "Write down intensity ≥ ops:byte for this layer: which of its terms contain the batch?",
            "2·o·i·b ≥ r · s · (o·i + …·b + …·b), solved for b",
        ),
        "no-limit-known": Diagnosis(
            "For this layer no batch is large enough: the intensity grows towards a bound.",
            "What does the intensity tend to when the batch grows without end?",
            "As b → ∞ the intensity tends to 2·o·i / (s·(o + i)): compare it with ops:byte.",
        ),
        "gives-up": Diagnosis(
            "A layer that is only just wide enough takes a large batch, and none is found.",
            "Up to which batch do you search, and how do you know that no larger one is enough?",
            "As b → ∞ the intensity tends to 2·o·i / (s·(o + i)): only below ops:byte is it None.",
        ),
        "rounded-down": Diagnosis(
            "The batch is rounded down, and falls just short.",
            "Is the intensity at your batch already at the limit?",
            "math.…(b)",
        ),
        "not-rounded": Diagnosis(
            "A batch is a whole number.",
            "Which whole number is the smallest that is enough?",
            "math.…(b)",
        ),
        "result-forgotten": Diagnosis(
            "The outputs of the layer, outputs × batch, are not counted as traffic.",
            "Which three matrices move, and which of them grow with the batch?",
            "bytes = s · (o·i + i·b + …)",
        ),
        "inputs-forgotten": Diagnosis(
            "The inputs of the layer, inputs × batch, are not counted as traffic.",
            "Which three matrices move, and which of them grow with the batch?",
            "bytes = s · (o·i + … + o·b)",
        ),
        "weights-only": Diagnosis(
            "Only the weights are counted as traffic.",
            "Which three matrices move, and which of them grow with the batch?",
            "bytes = s · (o·i + … + …)",
        ),
        "elements-not-bytes": Diagnosis(
            "Elements are counted; one of float16 has two bytes.",
            "How many bytes has an element of float16?",
            "bytes = … · (o·i + i·b + o·b)",
        ),
        "factor-of-two": Diagnosis(
            "The intensity is half of what it should be: a multiply-add is counted as one "
            "operation, or an element of float16 as four bytes.",
            "How does the data sheet count a multiply-add, and how many bytes has float16?",
            "intensity = … · o · i · b / (… · (o·i + i·b + o·b))",
        ),
        "peak-of-float32": Diagnosis(
            "The peak is that of float32; the layer is in float16, which has its own units.",
            "Which units multiply float16 matrices on this device?",
            "device.ops_per_byte(…)",
        ),
        "device-ignored": Diagnosis(
            "The result is that of one device whatever the device is.",
            "Which number in your formula depends on the device?",
            "ratio = device.…",
        ),
    },
    praise="A batch shares the weights: only when it is large enough do the arithmetic units set "
    "the pace, and for narrow layers it never is.",
)

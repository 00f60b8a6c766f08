"""Exercise 02.2: the time that arithmetic and each memory need, and the longest of them."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from gemmlab.course.judging import Diagnosis, Finding, Task, drawing, functions_on_trial
from gemmlab.device import Device, device

Moved = Mapping[str, float]
Case = tuple[Device, str, float, Moved]

# Each resource takes longest in some: arithmetic in the first, DRAM in the second, L2, shared. The
# last but one takes equally long in two, the last one moves nothing that counts.
CASES: tuple[Case, ...] = (
    (device("v100"), "float32", 2e12, {"dram": 1e9}),
    (device("v100"), "float16", 2e9, {"dram": 3e9}),
    (device("h200"), "float32", 1e12, {"dram": 4e10, "l2": 1.5e11}),
    (device("h200"), "float32", 6e11, {"dram": 1e9, "l2": 7e10, "shared": 7e11}),
    (device("a100_80gb"), "tf32", 5e13, {"dram": 3e10, "l2": 2e11, "shared": 2e12}),
    (device("a100_80gb"), "float16", 1e12, {"dram": 5e10, "l2": 1e11, "shared": 3e11}),
    (device("t4"), "float16", 4e12, {"dram": 2e10, "shared": 5e11}),
    (
        device("v100"), "float16", 1e-3 * device("v100").peak_of("float16"),
        {"dram": 1e-3 * device("v100").dram_bandwidth},
    ),
    (device("t4"), "float32", 1e12, {}),
)  # fmt: skip
COPY: Case = (device("h200"), "float32", 0.0, {"dram": 1e9, "l2": 2e9})  # computes nothing


def seconds(device, dtype, flops, moved):
    """The least time of a launch [s]."""
    # [answer] return ...
    times = [flops / device.peak_of(dtype)]
    for level, count in moved.items():
        times.append(count / device.bandwidth_of(level))
    return max(times)
    # [end]


def _times(target: Device, dtype: str, flops: float, moved: Moved) -> tuple[float, ...]:
    """The time that arithmetic needs, then those of each memory [s]."""
    memories = (count / target.bandwidth_of(level) for level, count in moved.items())
    return flops / target.peak_of(dtype), *memories


def reference(target: Device, dtype: str, flops: float, moved: Moved) -> float:
    """The longest of all times [s]."""
    return max(_times(target, dtype, flops, moved))


def _of_times(
    combined: Callable[[tuple[float, ...]], float | None],
) -> Callable[..., float | None]:
    return lambda *case: combined(_times(*case))


def _all_from_dram(target: Device, dtype: str, flops: float, moved: Moved) -> float:
    return max(flops / target.peak_of(dtype), sum(moved.values()) / target.dram_bandwidth)


def _each_from_dram(target: Device, dtype: str, flops: float, moved: Moved) -> float:
    slowest = max(moved.values(), default=0) / target.dram_bandwidth
    return max(flops / target.peak_of(dtype), slowest)


def _one_memory_at_a_time(target: Device, dtype: str, flops: float, moved: Moved) -> float:
    math, *memories = _times(target, dtype, flops, moved)
    return max(math, sum(memories))


def _in_float32(target: Device, dtype: str, flops: float, moved: Moved) -> float:
    return reference(target, "float32", flops, moved)


def _fma_counted_twice(target: Device, dtype: str, flops: float, moved: Moved) -> float:
    return reference(target, dtype, 2 * flops, moved)


INSTEAD = {
    "times-added": _of_times(sum),
    "math-then-memory": _of_times(lambda times: times[0] + max(times[1:], default=0)),
    "memories-added": _one_memory_at_a_time,
    "shortest": _of_times(min),
    "math-only": _of_times(lambda times: times[0]),
    "math-forgotten": _of_times(lambda times: max(times[1:], default=None)),
    "dram-only": _of_times(lambda times: max(times[:2])),
    "one-bandwidth": _all_from_dram,
    "one-bandwidth each": _each_from_dram,
    "peak-of-float32": _in_float32,
    "operations-doubled": _fma_counted_twice,
    "speed-not-time": lambda *case: case[2] / reference(*case),
    "upside-down": lambda *case: 1 / min(_times(*case)),
}


def _drawn_anew() -> list[Case]:
    """Two launches with any resource in the lead."""
    rng, found = drawing.generator(), []
    for name in ("v100", "h200"):
        target = device(name)
        flops = float(rng.uniform(0.2, 1)) * 1e-3 * target.peak_of("float16")
        moved = {
            level: float(rng.uniform(0.2, 1)) * 1e-3 * target.bandwidth_of(level)
            for level in ("dram", "l2", "shared")
        }
        found.append((target, "float16", flops, moved))
    return found


def _shown(value: Any) -> str:
    if isinstance(value, Device):
        return value.name
    if isinstance(value, Mapping):
        return "{" + ", ".join(f'"{level}": {count:.3g}' for level, count in value.items()) + "}"
    return f'"{value}"' if isinstance(value, str) else f"{value:.3g}"


def judge(answer: Any) -> Finding:
    """Try every launch on its device, and then a copy."""
    found = functions_on_trial.judge(
        "seconds", answer, CASES, reference, INSTEAD, _shown, fresh=_drawn_anew()
    )
    found = found or _of_a_copy(answer)
    if found is None:
        text = f"{len(CASES)} launches, a copy and two drawn anew; arithmetic or a memory may lead"
        return Finding("passed", (("Checked", text),))
    if found.diagnosis == "raises" and not found.details["case"][-1]:
        return replace(found, diagnosis="nothing-moved")
    return replace(found, diagnosis=found.diagnosis.split()[0])


def _of_a_copy(answer: Any) -> Finding | None:
    """Try the launch without arithmetic; who divides by its operations has no answer to it."""
    found = functions_on_trial.judge("seconds", answer, [COPY], reference, {}, _shown)
    if found is None or found.details.get("error") == "ZeroDivisionError":
        return None
    return replace(found, diagnosis="copy-takes-time") if "got" in found.details else found


TASK = Task(
    name="02.2",
    title="The longest of all times",
    section="chapter 02, Which memory sets the time?",
    asked="seconds(device, dtype, flops, moved) is the least time of a launch in seconds: "
    "arithmetic and every memory work at the same time.",
    prompt="""
    A launch computes `flops` operations in the format `dtype`, and moves the bytes in `moved`: a
    dictionary whose keys are some of `"dram"`, `"l2"` and `"shared"`, such as
    `{"dram": 1e9, "shared": 7e11}`. It may be empty: all data is in registers then.

    Write `seconds(device, dtype, flops, moved)`: the time that it takes at least, if arithmetic and
    all memories work at the same time. `device.peak_of(dtype)` is a peak in FLOP/s, and
    `device.bandwidth_of("l2")` a bandwidth in B/s.

    `q2.check(seconds)` asks for several launches on several devices.
    """,
    judge=judge,
    answers=(seconds,),
    diagnoses={
        "not-attempted": Diagnosis(
            "The skeleton is unchanged.",
            "How long does arithmetic take alone, and how long DRAM alone?",
            "```python\ntimes = [flops / ...]\nfor level, count in moved.items():\n"
            "    times.append(count / ...)\nreturn ...(times)\n```",
        ),
        "nothing-moved": Diagnosis(
            "`moved` may be empty, and then only arithmetic takes time.",
            "What are max(3, *[]) and max([3, *[]])?",
            "```python\ntimes = [flops / ...]    # always there\nreturn max(times)\n```",
        ),
        "copy-takes-time": Diagnosis(
            "A launch that computes nothing still moves its bytes, and that takes time.",
            "How long does a copy of 1 GB take, and how many operations does it do?",
            "```python\nreturn max(times)    # no case of its own for flops = 0\n```",
        ),
        "times-added": Diagnosis(
            "The times are added; these parts of the chip work at the same time.",
            "Two people carry at the same time, one for 3 minutes and one for 5. When are both "
            "done?",
            "return …(times)",
        ),
        "math-then-memory": Diagnosis(
            "Arithmetic waits for memory here; both work at the same time.",
            "While data of later elements is under way, what do the FMA units do?",
            "return …(arithmetic, longest of the memories)",
        ),
        "memories-added": Diagnosis(
            "The times of the memories are added; they too work at the same time.",
            "While shared memory delivers one tile, may L2 bring the next one?",
            "return …(arithmetic, dram, l2, shared)",
        ),
        "shortest": Diagnosis(
            "The shortest time is taken; the launch is done when the last part is.",
            "Can a launch be over while one of its memories still delivers?",
            "return …(times)",
        ),
        "math-only": Diagnosis(
            "Only the arithmetic counts.",
            "How long does each memory need for its bytes?",
            "for level, count in moved.items(): count / …",
        ),
        "math-forgotten": Diagnosis(
            "Only the memories count.",
            "How long would it take if all data lay in registers?",
            "flops / device.…",
        ),
        "dram-only": Diagnosis(
            "Only DRAM counts among the memories; here another one takes longer.",
            "Which keys has `moved` in the case that fails?",
            "for level, count in moved.items(): count / device.bandwidth_of(…)",
        ),
        "one-bandwidth": Diagnosis(
            "All bytes are divided by the bandwidth of DRAM; each memory has its own.",
            "How fast are L2 and shared memory of this device?",
            "count / device.bandwidth_of(…)",
        ),
        "peak-of-float32": Diagnosis(
            "The peak is that of float32 whatever the format is.",
            "What does `device.peak_of` take?",
            "flops / device.peak_of(…)",
        ),
        "operations-doubled": Diagnosis(
            "Operations are counted twice: `flops` has two for each FMA already.",
            "In which unit is `flops`, and in which the peak?",
            "flops / device.peak_of(dtype)",
        ),
        "speed-not-time": Diagnosis(
            "That is the speed that the roof allows [FLOP/s]; the time was asked for.",
            "In which unit is your result?",
            "seconds = flops / speed",
        ),
        "upside-down": Diagnosis(
            "Rates are divided by amounts: that is one over a time.",
            "What unit has (B/s) / B?",
            "amount / rate",
        ),
    },
    praise="The slowest resource sets the time, and which one that is depends on the program: it "
    "may ask one memory for far more than another.",
)

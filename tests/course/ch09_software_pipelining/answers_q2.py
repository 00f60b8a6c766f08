"""Answers to exercise 09.2."""

from math import ceil

import numpy as np

from gemmlab.course.ch09_software_pipelining.q2_pipeline_steps import (
    LOOPS,
    STAGED,
    TIMES,
    loop,
    needed,
    period,
)
from gemmlab.model.pipeline import Pipeline, stages_needed
from tests.course.answers import Wrong, edited, fooling, for_ever, from_the_judge, table


def _searched(copy, multiply):
    stages = 1
    while (stages - 1) * multiply < copy:
        stages += 1
    return stages


def _in_turn(stages, copy, multiply):
    """From a schedule, over turns that are whole."""
    ahead = max(1, stages - 1)
    tiles = Pipeline(40 * ahead + 1, stages, copy, multiply).schedule()
    return (tiles[-1].done - tiles[0].done) / (40 * ahead)


def _simulated(steps, stages, copy, multiply):
    """Step by step: wait for the tile, ask for another one, multiply."""
    if stages == 1:
        return steps * (copy + multiply)
    arrives, now = [copy] * (stages - 1), 0
    for step in range(steps):
        now = max(now, arrives[step])
        arrives.append(now + copy)
        now += multiply
    return now


RIGHT = {
    "step by step": (period, needed, _simulated),
    "the model's": (
        lambda stages, copy, multiply: Pipeline(9, stages, copy, multiply).period,
        stages_needed,
        lambda steps, stages, copy, multiply: Pipeline(steps, stages, copy, multiply).cycles,
    ),
    "counted": (
        _in_turn,
        _searched,
        lambda steps, stages, copy, multiply: (
            copy + multiply + sum([_in_turn(stages, copy, multiply)] * (steps - 1))
        ),
    ),
}
PERIOD = """    if stages == 1:
        return copy + multiply
    return max(multiply, copy / (stages - 1))"""


def _period(misconception, diagnosis, new):
    answer = edited(period, (PERIOD, f"    return {new}"))
    return Wrong(misconception, diagnosis, (answer, needed, loop))


def _needed(misconception, diagnosis, new):
    answer = edited(needed, ("1 + ceil(copy / multiply)", new))
    return Wrong(misconception, diagnosis, (period, answer, loop))


def _loop(misconception, diagnosis, new):
    answer = edited(loop, ("copy + (steps - 1) * period(stages, copy, multiply) + multiply", new))
    return Wrong(misconception, diagnosis, (period, needed, answer))


ONE = "copy + multiply if stages == 1 else "
WRONG = {
    "one stage is a pipeline": _period(
        "a copy always overlaps", "one-stage-overlaps", "max(multiply, copy / max(1, stages - 1))"
    ),
    "all stages": _period(
        "stages are tiles under way", "all-stages-ahead", ONE + "max(multiply, copy / stages)"
    ),
    "all stages, from one on": _period(
        "stages are tiles under way", "all-stages-ahead", "max(multiply, copy / stages)"
    ),
    "a producer's ring": _period(
        "a slot is asked for when it is empty", "asked-when-empty",
        "max(multiply, (copy + multiply) / stages)",
    ),
    "deep rings": _period(
        "many stages hide any copy", "right-in-part",
        ONE + "multiply if stages >= 40 else max(multiply, copy / (stages - 1))",
    ),
    "double buffer": _period(
        "one tile ahead is all there is", "two-at-most", ONE + "max(multiply, copy)"
    ),
    "in turn": _period("a step is copy and product", "one-after-the-other", "copy + multiply"),
    "sum": _period("parts of a step add up", "added-up", ONE + "multiply + copy / (stages - 1)"),
    "products": _period("a pipeline hides all copies", "products-alone", "multiply"),
    "copies": _period("memory is what takes time", "copies-alone", ONE + "copy / (stages - 1)"),
    "half a step": _period(
        "// divides", "whole-numbers-only", ONE + "max(multiply, copy // (stages - 1))"
    ),
    "a gap in the first": _period("two of three are enough", "not-attempted", "..."),
    "under way alone": _needed(
        "the present tile is in registers", "present-tile-forgotten", "ceil(copy / multiply)"
    ),
    "rounded down": _needed("// is enough", "rounded-down", "1 + copy // multiply"),
    "a fraction": _needed("a number of stages", "not-whole", "1 + copy / multiply"),
    "exchanged": _needed("long products need stages", "upside-down", "1 + ceil(multiply / copy)"),
    "two": _needed("double buffering always hides", "constant", "2"),
    "no prologue": _loop(
        "every step takes a period", "prologue-forgotten", "steps * period(stages, copy, multiply)",
    ),
    "no epilogue": _loop(
        "the last step takes a period", "epilogue-forgotten",
        "copy + steps * period(stages, copy, multiply)",
    ),
    "one more": _loop(
        "the last product comes on top", "steps-too-many",
        "copy + steps * period(stages, copy, multiply) + multiply",
    ),
    "never waiting": _loop(
        "after the prologue all is hidden", "products-alone-in-the-loop", "copy + steps * multiply",
    ),
}  # fmt: skip


FOOLING = {
    "periods by heart": fooling(
        "the cases are in the package", "known-cases-only", table(period, STAGED), needed, loop,
    ),
    "stages by heart": fooling(
        "the cases are in the package", "known-cases-only", period, table(needed, TIMES, 9), loop,
    ),
    "loops by heart": fooling(
        "the cases are in the package", "known-cases-only", period, needed, table(loop, LOOPS),
    ),
    "for ever": fooling("nobody can stop it", "never-ends", for_ever, needed, loop),
    "the judge's": fooling(
        "a caller knows", "constant", period, from_the_judge, loop,
    ),
    "an array": fooling(
        "an array is a number", "wrong-type", lambda *times: np.array([1.0]), needed, loop,
    ),
    "ceil of nothing": fooling(
        "a pipeline of no copies", "raises", period, lambda copy, multiply: ceil(copy / 0), loop,
    ),
}  # fmt: skip

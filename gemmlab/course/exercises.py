"""Exercises: a problem, a check that says why, hints chosen by what went wrong, a solution.

>>> q = get("04.1")
>>> q.check(None).diagnosis
'wrong-type'

A new exercise is one module with a `TASK` (`exercise.Task`), a line in `_MODULES`, and a file of
answers in ``tests/course/answers`` with the same name. The module has, in this order:

    CASES     what is tried, smallest first: the first failure is the one that is shown
    the answer
              a function, the learner's lines between ``# [answer]`` and ``# [end]``, from which
              prompt, skeleton and solution are cut
    judge     the answers -> a `Finding`. It never calls an answer itself: `quantities.judge` for
              functions that return numbers, `guard.attempts` for others in plain Python,
              `arrays_on_trial` for kernels, `kernels_on_trial.judge` and `budgets.judge` for those
              that share tiles; `timed.judge` adds the time on an H200, `timed.within` a limit,
              both left out where code cannot be compiled. All of them run answers apart
              (`apart`), hand out copies, and compare with references that the answer never
              touches. One case is drawn anew for each check, so that nothing can be known by heart
    diagnoses cause, question and partial solution of each mistake that `judge` can tell;
              `general_diagnoses` has those that any exercise may give

The answers are three right ones in different styles, wrong ones with their misconception, and ones
that are meant to fool the check, each with the diagnosis that it must get. Every diagnosis of the
module must be among them.
"""

from __future__ import annotations

import importlib

from gemmlab.course.judging.exercise import Exercise
from gemmlab.course.judging.verdict import Verdict

__all__ = ["Exercise", "Verdict", "get", "names"]

# Chapter and number -> the module that states the exercise.
_MODULES = {
    "01.1": "gemm_in_numpy",
    "01.2": "counts",
    "01.3": "outer_products",
    "01.4": "linear_layer",
    "02.1": "fused_epilogue",
    "02.2": "longest_time",
    "02.3": "shared_weights",
    "02.4": "implicit_gemm",
    "03.1": "thread_map",
    "03.2": "coalesced_product",
    "03.3": "coalesced_pieces",
    "04.1": "one_tile",
    "04.2": "tiled_kernel",
    "04.3": "barriers",
    "04.4": "transposed_b",
    "04.5": "traffic_budget",
    "05.1": "only_what_is_needed",
    "05.2": "tiles_and_waves",
    "05.3": "blocks_that_stay",
    "05.4": "tile_chooser",
    "06.1": "register_tile",
    "06.2": "wide_loads",
    "06.3": "thread_tile_counts",
    "07.1": "register_rule",
    "07.2": "warp_gemm",
    "07.3": "matrix_loads",
    "07.4": "fragment_map",
    "08.1": "warp_fragments",
    "08.2": "places_of_pieces",
    "08.3": "swizzled_tile",
    "08.4": "warp_tile_counts",
    "09.1": "copies_ahead",
    "09.2": "pipeline_steps",
    "09.3": "ring_of_copies",
    "09.4": "stream_in_flight",
    "10.1": "part_of_k",
    "10.2": "split_chooser",
    "10.3": "share_of_steps",
    "10.4": "softmax_in_parts",
    "11.1": "bfloat16_bits",
    "11.2": "tensor_core_block",
    "11.3": "split_in_two",
    "12.1": "corrected_product",
    "12.2": "split_footprint",
    "12.3": "quads",
    "12.4": "range_kept",
}


def names() -> list[str]:
    """The names that `get` accepts, in the order of the chapters."""
    return list(_MODULES)


def get(name: str) -> Exercise:
    """The exercise called `name`, with no attempt made yet.

    Raises ValueError for an unknown name; `names` lists the known ones.
    """
    if not isinstance(name, str) or name not in _MODULES:
        raise ValueError(f"unknown exercise {name!r}; use one of {', '.join(_MODULES)}")
    return Exercise(importlib.import_module(f"{__name__}.{_MODULES[name]}").TASK)

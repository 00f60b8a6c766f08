"""Exercises: a problem, a check that says why, hints chosen by what went wrong, a solution.

>>> q = get("04.1")
>>> q.check(None).diagnosis
'wrong-type'

A new exercise is one module with a `TASK` (`judging.exercise.Task`), ``q<number>_<name>.py`` in the
folder of its chapter, and a file of answers, ``answers_q<number>.py`` in the folder of
``tests/course`` with the same name. The module has, in this order:

    CASES     what is tried, smallest first: the first failure is the one that is shown
    the answer
              a function, the learner's lines between ``# [answer]`` and ``# [end]``, from which
              prompt, skeleton and solution are cut
    judge     the answers -> a `Finding`. It never calls an answer itself, but hands it to a module
              of `judging`: `functions_on_trial` for functions that return numbers, `guard` for
              others in plain Python, `arrays_on_trial` for kernels, `kernels_on_trial` for those
              that share tiles; `timed.judge` adds the time on an H200, `timed.within` a limit, both
              left out where code cannot be compiled. All of them run answers apart (`apart`), hand
              out copies, and compare with references that the answer never touches. One case is
              drawn anew for each check, so that nothing can be known by heart
    diagnoses cause, question and partial solution of each mistake that `judge` can tell;
              `judging.diagnoses` has those that many exercises give

The answers are three right ones in different styles, wrong ones with their misconception, and ones
that are meant to fool the check, each with the diagnosis that it must get. Every diagnosis of the
module must be among them.
"""

from importlib import import_module

from gemmlab.course import exercise_modules
from gemmlab.course.judging.exercise import Exercise
from gemmlab.course.judging.verdict import Verdict
from gemmlab.course.review import Review, review

__all__ = ["Exercise", "Review", "Verdict", "get", "names", "review"]


def names() -> list[str]:
    """The names that `get` accepts, in the order of the chapters."""
    return list(exercise_modules())


def get(name: str) -> Exercise:
    """The exercise called `name`, with no attempt made yet.

    Raises ValueError for an unknown name; `names` lists the known ones.
    """
    if not isinstance(name, str) or name not in exercise_modules():
        raise ValueError(f"unknown exercise {name!r}; use one of {', '.join(names())}")
    return Exercise(import_module(exercise_modules()[name]).TASK)

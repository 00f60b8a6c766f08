"""The course: a folder for each chapter, and what asks its questions and judges its answers.

A chapter is a folder `ch<number>_<name>`, named as its notebook. Its `guesses.py` has the answers
to its predictions, one function each, and each `q<number>_<name>.py` is an exercise. They are found
by their names: no table lists them.
"""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module
from types import ModuleType


@cache
def chapters() -> dict[str, str]:
    """The chapters that there are: number, such as "04" -> name of its folder."""
    return {name[2:4]: name for name in _inside(__path__) if name.startswith("ch")}


@cache
def exercise_modules() -> dict[str, str]:
    """The exercises that there are: name, such as "04.1" -> name of its module, in order."""
    return {
        f"{number}.{name.partition('_')[0][1:]}": f"{__name__}.{folder}.{name}"
        for number, folder in chapters().items()
        for name in _inside(import_module(f"{__name__}.{folder}").__path__)
        if name.startswith("q")
    }


def guesses_of(chapter: str) -> ModuleType:
    """The module with the answers to the predictions of a chapter."""
    return import_module(f"{__name__}.{chapters()[chapter]}.guesses")


def _inside(path: list[str]) -> list[str]:
    """The names of the modules in a folder, sorted."""
    return sorted(module.name for module in pkgutil.iter_modules(path))

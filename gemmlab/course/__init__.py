"""The course: a folder for each chapter, and `judging`, which judges the answers to exercises.

A chapter is a folder `ch<number>_<name>`, named as its notebook. Its `guesses.py` has the answers
to its predictions, one function each, and each `q<number>_<name>.py` is an exercise. They are found
by their names: no table lists them.
"""

from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType

_HERE = Path(__file__).parent


@cache
def chapters() -> dict[str, str]:
    """The chapters that there are: number, such as "04" -> name of its folder."""
    folders = sorted(path.parent.name for path in _HERE.glob("ch*/guesses.py"))
    return {name[2:4]: name for name in folders}


@cache
def exercise_modules() -> dict[str, str]:
    """The exercises that there are: name, such as "04.1" -> name of its module, in order."""
    return {
        f"{number}.{_number(path)}": f"{__name__}.{folder}.{path.stem}"
        for number, folder in chapters().items()
        for path in sorted((_HERE / folder).glob("q*.py"), key=_number)
    }


def guesses_of(chapter: str) -> ModuleType:
    """The module with the answers to the predictions of a chapter."""
    return import_module(f"{__name__}.{chapters()[chapter]}.guesses")


def _number(exercise: Path) -> int:
    """The number of an exercise, by the name of its file: 2 of ``q2_tiles.py``."""
    return int(exercise.stem.partition("_")[0][1:])

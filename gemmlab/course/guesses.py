"""Predictions of the reader: `guess` keeps a number, `reveal` compares it with the answer.

>>> from gemmlab import guess
>>> rows = guess("03.rows", unit="rows")
>>> rows(16)
Kept: **16 rows**.
>>> print(rows.reveal().split(".")[0])
You said 16 rows; it is **2 rows**

A chapter's answers are functions of one module of this package, so that no notebook spells them
out; "03.rows" is the function `rows` of the module of chapter 03.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable

from gemmlab.course.answer import Answer
from gemmlab.course.guess import Guess

__all__ = ["Answer", "Guess", "guess", "keys"]

# Chapter -> the module with its answers.
_MODULES = {
    "00": "start_here",
    "01": "what_is_gemm",
    "02": "intensity_and_limiters",
    "03": "threads_warps_blocks",
    "04": "shared_memory_tiling",
    "05": "tile_and_wave_quantization",
    "06": "register_tiles",
    "07": "warps_and_fragments",
    "08": "tensor_core_gemm",
    "09": "software_pipelining",
    "10": "split_k",
    "11": "number_formats",
    "12": "tcec",
}


def guess(key: str, unit: str) -> Guess:
    """The reader's guess at the question `key`, with no number yet, in `unit`.

    Raises ValueError for a key that no chapter has; `keys` lists the known ones.
    """
    chapter, _, name = str(key).partition(".")
    if chapter not in _MODULES or name not in _answers(chapter):
        raise ValueError(f"unknown question {key!r}; use one of {', '.join(keys())}")
    return Guess(key, unit, _answers(chapter)[name])


def keys() -> list[str]:
    """The keys that `guess` accepts, in the order of the chapters."""
    return [f"{chapter}.{name}" for chapter in _MODULES for name in _answers(chapter)]


def _answers(chapter: str) -> dict[str, Callable[[], Answer]]:
    """Name -> answer: the public functions that the chapter's module defines."""
    module = importlib.import_module(f"{__name__}.{_MODULES[chapter]}")
    return {
        name: value
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", "") == module.__name__
    }

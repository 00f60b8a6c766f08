"""Diagnoses that an answer to any exercise may get."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gemmlab.course.judging.verdict import Diagnosis

# Code that does not come to its end.
STOPPED = {
    "not-attempted": Diagnosis(
        "The skeleton is unchanged.",
        "What is asked for, in one sentence?",
        "Replace one gap after the other and check after each: the verdict says how far it got.",
    ),
    "wrong-type": Diagnosis(
        "The answer is not of the kind that was asked for.",
        "Which name in the skeleton does the check expect, with which parameters, and what does "
        "it return?",
        "```python\ndef name(...):    # as in the skeleton\n    ...\n    return ...\n```",
    ),
    "raises": Diagnosis(
        "The code stops with an error, so that there is no result to judge.",
        "What does the error say, and which value at that line differs from what you expect?",
        "Call your function in a cell of its own with the case that is named, and print what "
        "stands on that line.",
    ),
    "never-ends": Diagnosis(
        "A loop runs far longer than this case needs.",
        "Which statement brings the loop nearer to its end, in every pass?",
        "```python\nwhile p < k:\n    ...\n    p += ...    # reached in every pass\n```",
    ),
    "exits": Diagnosis(
        "The code ends the program instead of returning a result.",
        "Where does it say exit, and what should it return there?",
        "```python\nreturn ...    # in place of exit()\n```",
    ),
    "out-of-memory": Diagnosis(
        "The code asks for more memory than the whole problem has.",
        "How many elements have A, B and C together, and how many does your array have?",
        "```python\nresult = np.zeros((m, n))    # as large as C, no larger\n```",
    ),
    "crashes": Diagnosis(
        "The process in which the code ran was brought down: something wrote to memory that is "
        "not its own, or called itself without end.",
        "Which statement reaches below Python: ctypes, a raised recursion limit, a signal?",
        "NumPy and plain Python are enough for every exercise.",
    ),
    "arguments-changed": Diagnosis(
        "The code changes something that it was given and may only read.",
        "Which statement writes into an array or a list that the caller owns?",
        "Build a new value: `x = x + y` makes one; `x += y`, `x[...] = y` and `x.append(y)` change "
        "the one that is there.",
    ),
    "inputs-changed": Diagnosis(
        "The kernel stores to an array that it may only read.",
        "Which name stands left of the = on the line that stores?",
        "Only the array of the result stands on the left of an assignment with an index.",
    ),
    "tampers": Diagnosis(
        "The code replaces a part of Python, NumPy or gemmlab, which is what its result would be "
        "judged with.",
        "Which assignment has the name of a module on its left?",
        "Give your own function a name of its own, and call it by that.",
    ),
}

# Results that are wrong in a way that nobody foresaw, from what they have in common.
PATTERNS = {
    "known-cases-only": Diagnosis(
        "It is right in the cases that every check tries, and wrong in one that was drawn just "
        "now: the result is looked up, or fitted, and not computed from the arguments.",
        "Which number in the code stands for something that changes from case to case?",
        "Write the rule in terms of the parameters, with no number that stems from a check.",
    ),
    "not-finite": Diagnosis(
        "The result holds NaN or infinity: something was never set, or divided by zero.",
        "Which value has no number yet when it is first used?",
        "A NaN stays a NaN through every sum: look for the first value that is one.",
    ),
    "all-zeros": Diagnosis(
        "The result is zero everywhere: what was computed never got there.",
        "Which statement puts the sums into the result, and is it reached?",
        "Print one sum just before it is stored.",
    ),
    "constant": Diagnosis(
        "The result is the same whatever the arguments are.",
        "Which of the parameters does the returned expression name?",
        "Each parameter of the skeleton has its place in the formula.",
    ),
    "by-a-factor": Diagnosis(
        "Every result is off by the same factor.",
        "What in the formula is as large as this factor, or one over it?",
        "A factor that is missing, or there twice: a unit, a 2 for multiply and add, alpha.",
    ),
    "by-a-constant": Diagnosis(
        "Every result is off by the same amount.",
        "What is counted once too often, or once too few?",
        "Work the smallest case out by hand and see what the difference counts.",
    ),
    "whole-numbers-only": Diagnosis(
        "The results are rounded to whole numbers, and the right ones are not whole.",
        "What do / and // differ in, and where is a round() or an int()?",
        "```python\nreturn ... / ...    # one slash keeps the fraction\n```",
    ),
    "arguments-exchanged": Diagnosis(
        "The result is the right one for the arguments in another order.",
        "Which size does each parameter stand for, in the order of the skeleton?",
        "Put three different numbers in, and compare where each of them turns up.",
    ),
    "result-turned": Diagnosis(
        "The result is the transpose of the right one: rows and columns are exchanged at the end.",
        "Which of your two indices is the row of the result?",
        "```python\nresult[row, col] = ...    # row first\n```",
    ),
    "places-mixed": Diagnosis(
        "All values are right, but not all are where they belong.",
        "Where in the result does the first wrong element's right value turn up?",
        "Compare the index that a value is computed for with the one that it is stored to.",
    ),
    "edges-only": Diagnosis(
        "Whole tiles are right; what is wrong lies in the last, incomplete tile of a row or a "
        "column.",
        "What differs for a thread in the last block when the size is no multiple of the tile?",
        "Each of the two indices needs its own comparison: a row with m, a column with n.",
    ),
    "ragged-k": Diagnosis(
        "It is right where k is a multiple of the tile, and wrong where the last step along k is "
        "incomplete.",
        "In the last step, which elements of a tile lie beyond k, and what do they hold?",
        "Beyond k a tile has to hold 0, and the number of steps is ⌈k / T⌉.",
    ),
    "rows-wrong": Diagnosis(
        "Some rows are wrong in every element and the others are right.",
        "What do the wrong rows have in common: a half of a tile, every second one, the last ones?",
        "Follow one wrong row: which values of A does it multiply with?",
    ),
    "columns-wrong": Diagnosis(
        "Some columns are wrong in every element and the others are right.",
        "What do the wrong columns have in common: a half of a tile, every second one, the last?",
        "Follow one wrong column: which values of B does it multiply with?",
    ),
    "right-in-part": Diagnosis(
        "Some results are right and some are not, so that the rule holds for a part of the cases.",
        "What do the wrong ones have in common that the right ones have not?",
        "Put a right case beside the failing one, and look for the first step that differs.",
    ),
    "wrong-values": Diagnosis(
        "Hardly any result is the one that the definition gives.",
        "Take the failing case, which is the smallest there is: what does the definition say for "
        "it, step by step?",
        "Print what the code has after each step of that case; the first that differs is the one.",
    ),
}

GENERAL = STOPPED | PATTERNS

# Of "raises", by the name of the error.
ERRORS = {
    "NameError": Diagnosis(
        "A name is used that nothing was assigned to: it is misspelt, or set on another branch.",
        "On the line that is named, which name has no assignment above it?",
        "```python\nname = ...    # before the line that reads it\n```",
    ),
    "IndexError": Diagnosis(
        "An index lies outside of what it indexes.",
        "What is the largest index that the loop on this line takes, and how long is the array?",
        "An axis of length k has the indices 0 to k - 1: `for p in range(k)`.",
    ),
    "TypeError": Diagnosis(
        "A value is of another kind than the line takes: None, a function, or a number too many.",
        "What kind is each value on this line, and which one did you not expect?",
        "```python\nprint(type(...))    # of each value on that line\n```",
    ),
    "ValueError": Diagnosis(
        "A value of the right kind does not fit: most often two shapes that do not go together.",
        "Which shapes do the operands on this line have, and which do they need?",
        "m×k times k×n is m×n: the inner sizes are equal, the outer ones remain.",
    ),
    "ZeroDivisionError": Diagnosis(
        "Something is divided by zero.",
        "For which of the arguments does the divisor become 0?",
        "```python\nif ... == 0:\n    return ...\n```",
    ),
    "KeyError": Diagnosis(
        "A table has no entry for these arguments.",
        "Which arguments does the table know, and what does the rule say for the others?",
        "Compute the value from the parameters; then no table is needed.",
    ),
    "AttributeError": Diagnosis(
        "A value has no such attribute: it is misspelt, or the value is of another kind.",
        "What is the value to the left of the dot, on this line?",
        "```python\nprint(dir(...))    # what stands left of the dot\n```",
    ),
    "RecursionError": Diagnosis(
        "The function calls itself without coming to an end.",
        "For which arguments does it return without another call of itself?",
        "```python\nif ...:    # the smallest case\n    return ...\n```",
    ),
    "EOFError": Diagnosis(
        "The code asks for input, and in a check there is nobody to answer.",
        "Which parameter holds what you ask for?",
        "Take it from the parameters in place of input().",
    ),
    "UnsupportedError": Diagnosis(
        "The kernel uses a part of Python that kernels do not have.",
        "What does the error say to write instead?",
        "Kernels have numbers, tuples, arrays, if, for over range(...), while, and cuda's names.",
    ),
}
ERRORS["UnboundLocalError"] = ERRORS["NameError"]


def about(name: str, details: Mapping[str, Any], own: Mapping[str, Diagnosis]) -> Diagnosis:
    """The explanation of diagnosis `name`: the exercise's own, the error's, or the general one."""
    if name in own:
        return own[name]
    if name == "raises":
        return ERRORS.get(details.get("error", ""), GENERAL[name])
    return GENERAL[name]

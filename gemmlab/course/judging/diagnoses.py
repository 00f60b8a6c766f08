"""Diagnoses that many exercises give: causes and hints, by name.

`GENERAL` may be found in any answer, `KERNEL` in kernels that share tiles. `about` chooses the
explanation of a verdict.
"""

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
    "borrowed": Diagnosis(
        "The answer calls the function that its result would be compared with.",
        "From which of the parameters does the result follow, and how?",
        "Write the rule out in the answer itself, with no name that comes from gemmlab.course.",
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
    "senseless": Diagnosis(
        "The check cannot make sense of what came back from the process in which the code ran.",
        "Does the code reach what is not its own: open files, the modules that check it?",
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
    "not-compiled": Diagnosis(
        "The simulated GPU runs the kernel, but Numba cannot compile it for a real one.",
        "What does Numba say, and of which name does it find no single type?",
        "```python\nvalue = float32(0)    # one name, one type, in every branch\n```",
    ),
    "work-left-out": Diagnosis(
        "The small cases are right, but for large matrices the compiled kernel takes less time "
        "than their work needs: it leaves some of it out.",
        "Which condition of the kernel holds for large matrices and for none of the small cases?",
        "Sizes stand in guards and in the bounds of loops, and nowhere else.",
    ),
}

# Results that are wrong in a way that nobody foresaw, from what they have in common.
PATTERNS = {
    "known-cases-only": Diagnosis(
        "It is right in the cases that every check tries, and wrong in one that was drawn just "
        "now: something in it holds for the sizes or values of those cases alone.",
        "Which number in the code stands for something that changes from case to case?",
        "Write the rule in terms of the parameters, and try it with the case that is named.",
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
    "fractional-factors": Diagnosis(
        "It is right where alpha and beta are whole numbers, and wrong where one of them is not.",
        "Where do alpha and beta come in, and does each of them keep its fraction there?",
        "Put alpha = 1 and beta = 0.5 in: which elements are wrong, and by how much?",
    ),
    "late-steps": Diagnosis(
        "It is right where the sum over k has few steps, and wrong where it has more than all of "
        "those: a late step is left out, or counts otherwise than the first ones.",
        "Which statement of the loop does something else in a late step than in an early one?",
        "Try your function with the tile that is named, and with k of 10, 20 and 30 tiles: at "
        "which of them does it go wrong?",
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
    known = GENERAL | HAZARDS
    return known.get(name) or KERNEL.get(name) or known["wrong-values"]


# What a launch may do wrong, in any kernel.
HAZARDS = {
    "outside": Diagnosis(
        "An index lies outside of its array.",
        "For the thread that is named: what is each index on this line, and how long is the axis?",
        "An axis of length m has the indices 0 to m - 1.",
    ),
    "misaligned": Diagnosis(
        "An access of 8 or 16 bytes begins at an address that is no multiple of them.",
        "Which element does the thread that is named begin with, and of how many is that a "
        "multiple?",
        "```python\n..., 4 * t    # 16 bytes are four words\n```",
    ),
    "lanes-missing": Diagnosis(
        "A part of the threads comes to an instruction that all of them execute together.",
        "Which condition keeps threads from the line that is named?",
        "```python\n... = mma_...(...)    # without an if or a return that depends on lane\n```",
    ),
    "unset": Diagnosis(
        "A value is read before anything was stored there.",
        "Which statement should have stored it, and does every lane that reads come after it?",
        "```python\nfor x in range(4):\n    main[x] = 0    # before the loop\n```",
    ),
}

# Diagnoses of kernels that share tiles.
KERNEL = {
    "barrier-before-reading": Diagnosis(
        "A thread reads a tile before the others have finished writing it: a barrier is missing "
        "between copying and multiplying.",
        "When a thread starts to multiply, who tells it that the other threads have copied?",
        "```python\nBs[y, x] = ...\n...            # everybody has copied\nfor p in range(T):\n```",
    ),
    "barrier-after-reading": Diagnosis(
        "A thread copies the next tile while another one still reads the present one: a barrier "
        "is missing between multiplying and the next copy.",
        "Who may still be reading the tile when the fastest thread starts its next step?",
        "```python\nfor p in range(T):\n    acc += ...\n...            # everybody has read\n```",
    ),
    "two-writers": Diagnosis(
        "Two threads write the same element: they compute the same index.",
        "Which coordinate of the thread is missing from the index that you write to?",
        "As[…, …] must differ for each thread (x, y) of a block, C[…, …] for each of the grid.",
    ),
    "early-return": Diagnosis(
        "Threads outside C return before the loop, and then nobody copies their part of the tiles.",
        "Which threads of the last block leave before the barrier, and who copies for them?",
        "Guard the loads and the store, not the thread: all threads take part in every step.",
    ),
    "barrier-not-reached": Diagnosis(
        "Some threads wait at a barrier that others never reach: it stands in a branch.",
        "Which threads of the block do not come to this line?",
        "Guard the loads and the store, not the barrier: all threads take part in every barrier.",
    ),
    "tile-not-filled": Diagnosis(
        "An element of a tile was never written: beyond the edge of A or B it must become 0, "
        "because shared memory does not start at zero.",
        "What does a tile hold where it hangs over the edge of the matrix?",
        "```python\nAs[y, x] = A[row, start + x] if ... else ...\n```",
    ),
    "accumulator-not-zeroed": Diagnosis(
        "The running sum is read before it was given a value.",
        "What does the sum hold when the first product is added?",
        "```python\nacc = ...\nfor start in range(0, k, T):\n```",
    ),
    "always-nan": Diagnosis(
        "The running sum starts from NaN, and NaN plus anything stays NaN.",
        "What does the sum hold when the first product is added?",
        "```python\nacc = float32(...)\n```",
    ),
    "load-outside": Diagnosis(
        "A load lies outside A or B: the guard lets a thread through whose row, column or step "
        "is beyond the edge. Each of the two conditions has to hold.",
        "For the thread that is named: which of its two indices is too large, and which part of "
        "the condition should have stopped it?",
        "```python\n... if row < m ... start + x < k else float32(0)\n```",
    ),
    "store-outside": Diagnosis(
        "A store lies outside C: a thread beyond the edge has nothing to store.",
        "Which threads of the last block have no element of C?",
        "```python\nif row < m ... col < n:\n```",
    ),
    "tile-outside": Diagnosis(
        "An index into a tile is T or more: inside the tile only x, y and p count, not start.",
        "What is the largest index that a tile of T×T has?",
        "```python\nfor p in range(...):\n    acc += As[y, p] * Bs[p, x]\n```",
    ),
    "floor-steps": Diagnosis(
        "The last, incomplete tile along k is left out: the number of steps is rounded down.",
        "How many steps does k = T + 1 take?",
        "The number of steps is ⌈k / T⌉, which `range(0, …, T)` gives by itself.",
    ),
    "beta-dropped": Diagnosis(
        "The term beta·C is missing.",
        "What does C contribute where beta is not 0?",
        "```python\nC[row, col] = alpha * acc + ...\n```",
    ),
    "alpha-dropped": Diagnosis(
        "The sum is not multiplied by alpha.",
        "Which of the two terms does alpha scale?",
        "```python\nC[row, col] = ... * acc + beta * C[row, col]\n```",
    ),
    "alpha-scales-c": Diagnosis(
        "alpha multiplies the whole sum; it belongs to the product alone.",
        "Multiply your formula out: what stands before C?",
        "```python\nC[row, col] = alpha * ... + beta * C[row, col]\n```",
    ),
    "beta-zero-reads-c": Diagnosis(
        "C is read although beta is 0, and 0 · NaN is NaN.",
        "What may C hold before the first launch, and what is 0 times that?",
        "```python\nif beta == 0:\n    C[row, col] = ...\nelse:\n    C[row, col] = ...\n```",
    ),
    "reads-a-for-b": Diagnosis(
        "The tile of B is copied from A.",
        "Which array stands on the right of each of the two copies?",
        "```python\nBs[y, x] = ...[start + y, col] if ... else float32(0)\n```",
    ),
    "tiles-transposed": Diagnosis(
        "The rows of the tile of B are used as if they were its columns.",
        "Which index of A and which of B run together in the sum?",
        "```python\nacc += As[y, p] * Bs[..., ...]\n```",
    ),
    "not-written": Diagnosis(
        "Some elements of C are never stored.",
        "Which thread is in charge of the element that is named, and what stops it?",
        "Rows follow y and columns follow x: row < m and col < n.",
    ),
    "whole-numbers-only": Diagnosis(
        "Fractions get lost on the way: operands, sums or factors are cut to whole numbers.",
        "Which value is a whole number on the way from A and B to C: where is an int(), or a dtype "
        "without fractions?",
        "```python\nC[row, col] = alpha * acc    # all of them float32\n```",
    ),
    "low-precision": Diagnosis(
        "Operands or sums are rounded to 11 significant bits on the way: something is float16.",
        "In which dtype do the tiles and the running sum live?",
        "```python\nacc = ...(0)    # the format in which sums are kept\n```",
    ),
    "shared-memory-not-used": Diagnosis(
        "The result is right, but no tile is read from shared memory: each product loads its "
        "operands from global memory again.",
        "From which memory do the operands of the product in the inner loop come?",
        "```python\nacc += As[..., ...] * Bs[..., ...]\n```",
    ),
    "traffic-over-budget": Diagnosis(
        "The result is right, but elements of A or B are loaded more than once by the same block.",
        "How often does one thread read from global memory in one step along k?",
        "One load of A and one of B for each element of a tile, then only As and Bs.",
    ),
    "c-again": Diagnosis(
        "The result is right, but elements of C are loaded although beta is 0, or stored twice.",
        "How many of your statements name C[...], and which of them does one thread execute?",
        "```python\nC[row, col] = alpha * acc if beta == 0 else ...    # once, after the sum\n```",
    ),
    "lanes-in-turns": Diagnosis(
        "The result is right, but the lanes of a warp multiply in turns: it executes each "
        "branch for a part of them, and takes the time of both.",
        "Which condition differs between the lanes of one warp, and what do both branches do?",
        "```python\nif row < m and col < n:\n    for p in ...:    # one loop for all of them\n```",
    ),
    "few-threads-multiply": Diagnosis(
        "The result is right, but a few threads do the sums and the others only look on.",
        "How many elements of C does each thread of a block compute, and how many are its own?",
        "Each thread has its own elements of C, and stores no other: no loop over x or y.",
    ),
    "few-threads-copy": Diagnosis(
        "The result is right, but a few threads copy the tiles for all the others, which wait.",
        "A tile of A has T×T elements, and a block T×T threads. Who copies how many?",
        "```python\nAs[y, x] = ...    # every thread, without an if around it\n```",
    ),
    "copy-not-coalesced": Diagnosis(
        "The result is right and each element is loaded once, but neighbouring threads load "
        "elements a row apart: each sector is fetched several times.",
        "Which of x and y changes from one lane to the next, and which index of A does it move?",
        "```python\nAs[..., ...] = A[..., start + x]    # x along a row, of A and of B\n```",
    ),
    "tile-size-fixed": Diagnosis(
        "The tiles in shared memory have a size of their own, whatever T is.",
        "How large are your shared arrays with T = 2, and with T = 16?",
        "```python\nAs = cuda.shared.array((T, ...), float32)\n```",
    ),
    "products-missing": Diagnosis(
        "Each tile adds one product too few: the inner loop leaves out its first or its last.",
        "Which values does p take, and which columns does a tile have?",
        "```python\nfor p in range(T):    # 0 to T - 1\n```",
    ),
    "right-in-part": Diagnosis(
        "Some elements of C are right and others are not, in this case or from case to case.",
        "Which thread is in charge of the wrong element that is named, and what does it do that "
        "the thread of a right one does not?",
        "Write down for that one thread, step by step, which elements of As and Bs it multiplies.",
    ),
    "wrong-values": Diagnosis(
        "Hardly any element of C is right, from the smallest case on.",
        "In the smallest case that fails, which products should the first element sum up, and "
        "which does it?",
        "```python\nacc += As[..., p] * Bs[p, ...]    # row of A, column of B\n```",
    ),
}

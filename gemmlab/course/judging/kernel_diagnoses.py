"""Diagnoses of kernels that share tiles: causes and hints."""

from __future__ import annotations

from gemmlab.course.judging.verdict import Diagnosis

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
    "low-precision": Diagnosis(
        "The sum is rounded to 11 significant bits on the way: something is float16.",
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
        "The result is right, but the tiles in shared memory have a size of their own, whatever T "
        "is.",
        "How large are your shared arrays with T = 2?",
        "```python\nAs = cuda.shared.array((T, ...), float32)\n```",
    ),
    "products-missing": Diagnosis(
        "Each tile adds one product too few: the inner loop leaves out its first or its last.",
        "Which values does p take, and which columns does a tile have?",
        "```python\nfor p in range(T):    # 0 to T - 1\n```",
    ),
    "right-in-part": Diagnosis(
        "Some elements of C are right and others are not.",
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
    "not-compiled": Diagnosis(
        "The simulated GPU runs the kernel, but Numba cannot compile it for a real one.",
        "What does Numba say, and of which name does it find no single type?",
        "```python\nvalue = float32(0)    # one name, one type, in every branch\n```",
    ),
    "work-left-out": Diagnosis(
        "The small cases are right, but for large matrices the compiled kernel takes less time "
        "than their products need: it leaves some of them out.",
        "Which condition of the kernel holds for large matrices and for none of the small cases?",
        "The sizes m, n and k stand in guards and in the bounds of loops, and nowhere else.",
    ),
}

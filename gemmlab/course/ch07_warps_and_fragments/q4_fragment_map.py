"""Exercise 07.4: which lane, and which of its registers, holds an element of B."""

from typing import Any

from gemmlab.course.judging import Diagnosis, Finding, Task, functions_on_trial
from gemmlab.course.judging.functions_on_trial import Part
from gemmlab.instructions import layout

B = layout("m16n8k16", "B")
CASES = sorted(((i, j) for i in range(16) for j in range(8)), key=lambda ij: (sum(ij), ij))


def lane_of(i, j):
    """The lane that holds element (i, j) of B of m16n8k16."""
    # A whole number from 0 to 31.
    # [answer]
    return 4 * j + i % 8 // 2
    # [end]


def register_of(i, j):
    """The register that holds element (i, j) of B of m16n8k16, counted in elements."""
    # A whole number from 0 to 3.
    # [answer]
    return i % 2 + 2 * (i // 8)
    # [end]


def _lane(i: int, j: int) -> int:
    return B.map(i, j)[0][0]


def _register(i: int, j: int) -> int:
    return B.map(i, j)[1][0]


# What a mistake gives.
LANES_INSTEAD = {
    "as-in-a": lambda i, j: i % 8 * 4 + j // 2,
    "as-in-a 2": lambda i, j: 4 * i + j // 2,
    "as-in-a 3": lambda i, j: 4 * i + j % 8 // 2,
    "owns-a-row": lambda i, j: i,
    "owns-a-column": lambda i, j: j,
    "pairs-forgotten": lambda i, j: 4 * j + i % 4,
    "rows-below-elsewhere": lambda i, j: 4 * j + i // 2,
    "rows-below-elsewhere 2": lambda i, j: 8 * j + i // 2,
    "groups-swapped": lambda i, j: j + 8 * (i % 8 // 2),
    "counted-through": lambda i, j: (8 * i + j) // 4,
    "counted-through 2": lambda i, j: (16 * j + i) // 4,
    "counted-through 3": lambda i, j: (8 * i + j) % 32,
}
REGISTERS_INSTEAD = {
    "bits-swapped": lambda i, j: i % 2 * 2 + i // 8,
    "words-counted": lambda i, j: i // 8,
    "lower-rows-forgotten": lambda i, j: i % 2,
    "register-as-in-a": lambda i, j: j % 2 + 2 * (i // 8),
    "second-pair": lambda i, j: i % 2 + i // 8,
    "second-pair 2": lambda i, j: i % 2 + 4 * (i // 8),
}


PARTS = (
    Part(lane_of, _lane, LANES_INSTEAD),
    Part(register_of, _register, REGISTERS_INSTEAD),
)


def judge(lane: Any, register: Any) -> Finding:
    """The first element whose lane is wrong, then the first whose register is."""
    return functions_on_trial.judge_parts(PARTS, (lane, register), CASES, "elements")


TASK = Task(
    name="07.4",
    title="Who holds it?",
    section="chapter 07, A mapping that is written down",
    asked="lane_of(i, j) and register_of(i, j) say which lane, and which of its registers, holds "
    "element (i, j) of B of m16n8k16.",
    prompt="""
    `layout.element(lane, register)` tells which element a register holds. Write the inverse, for
    operand **B** of `m16n8k16`, which has 16 rows and 8 columns: `lane_of(i, j)`, from 0 to 31, and
    `register_of(i, j)`, from 0 to 3, both as whole numbers, with arithmetic only.

    The explorer shows the answer for each element. What is asked for is the rule. The check tries
    all 128 elements.
    """,
    judge=judge,
    answers=(lane_of, register_of),
    diagnoses={
        "not-attempted": Diagnosis(
            "The skeleton is unchanged.",
            "Walk down a column of B in the explorer: when does the lane change, and by how much?",
            "```python\nreturn 4 * j + ...\n```",
        ),
        "half-done": Diagnosis(
            "One of the two functions is written, and right.",
            "Hold the lane in the explorer: which of i and j tell its four registers apart?",
            "```python\nreturn i % 2 + 2 * (...)    # register\nreturn 4 * j + ...    # lane\n```",
        ),
        "wrong-type": Diagnosis(
            "Two functions of (i, j) are asked for, each of which returns one number.",
            "What does each function return? print() shows a number, but does not hand it over.",
            "```python\nreturn 4 * j + ...\n```",
        ),
        "not-whole": Diagnosis(
            "The result is not a whole number; / divides exactly, // drops the rest.",
            "What are 5 / 2 and 5 // 2?",
            "```python\n... // 2\n```",
        ),
        "as-in-a": Diagnosis(
            "That is the lane of A. In B the roles of row and column are exchanged.",
            "Which lanes hold column 0 of B?",
            "```python\nreturn 4 * j + ...\n```",
        ),
        "owns-a-row": Diagnosis(
            "A lane does not own a row: the elements of a row are spread over eight lanes.",
            "B has 16 rows. What would lanes 16 to 31 hold?",
            "```python\nreturn 4 * j + ...\n```",
        ),
        "owns-a-column": Diagnosis(
            "A lane does not own a column: four lanes share one.",
            "B has 8 columns. What would lanes 8 to 31 hold?",
            "```python\nreturn 4 * j + ...\n```",
        ),
        "pairs-forgotten": Diagnosis(
            "Two neighbours of a column share a 32-bit register, and so a lane.",
            "Elements (0, j) and (1, j): are they in one lane or in two?",
            "```python\nreturn 4 * j + i % 8 // ...\n```",
        ),
        "rows-below-elsewhere": Diagnosis(
            "Rows 8 to 15 have no lanes of their own; the lanes of rows 0 to 7 hold them too.",
            "Walk down column 0 of B in the explorer. In which lane is (8, 0)?",
            "```python\nreturn 4 * j + i % ... // 2\n```",
        ),
        "groups-swapped": Diagnosis(
            "Lanes 0 to 3 share column 0: neighbouring lanes hold neighbouring pairs of rows.",
            "Lanes 0 and 1: do they differ in i or in j?",
            "```python\nreturn 4 * j + ...\n```",
        ),
        "counted-through": Diagnosis(
            "The elements are not dealt to the lanes in the order in which they lie in memory.",
            "Which lane holds (1, 0), and which (0, 1)?",
            "```python\nreturn 4 * j + ...\n```",
        ),
        "bits-swapped": Diagnosis(
            "The two parts of the register's number are exchanged.",
            "Registers 0 and 1 of a lane: which two elements do they hold?",
            "```python\nreturn i % 2 + 2 * (...)\n```",
        ),
        "words-counted": Diagnosis(
            "Registers of 32 bits are counted; asked for are elements, two in each.",
            "How many elements of B does a lane hold?",
            "```python\nreturn i % 2 + 2 * (...)\n```",
        ),
        "lower-rows-forgotten": Diagnosis(
            "Rows 8 to 15 are in the second half of the registers.",
            "Elements (0, 0) and (8, 0) are in one lane. How are they told apart?",
            "```python\nreturn i % 2 + 2 * (...)\n```",
        ),
        "second-pair": Diagnosis(
            "Rows 0 to 7 take registers 0 and 1 of a lane, rows 8 to 15 registers 2 and 3.",
            "By how much does the register change from (0, 0) to (8, 0)?",
            "```python\nreturn i % 2 + ... * (i // 8)\n```",
        ),
        "register-as-in-a": Diagnosis(
            "The pair of a register lies in a row of A, but in a column of B.",
            "Registers 0 and 1 of a lane: do they differ in i or in j?",
            "```python\nreturn i % 2 + 2 * (...)\n```",
        ),
    },
    praise="Four lanes share a column, a pair of rows each, and the second register does the same "
    "eight rows further down: five bits of the lane, two of the register, each with one meaning.",
)

"""Answers to exercise 07.4."""

from gemmlab.course.ch07_warps_and_fragments.q4_fragment_map import CASES, B, lane_of, register_of
from gemmlab.course.judging import source
from tests.course.answers import Agrees, Wrong, cell, edited, fooling, in_order

RIGHT = {
    "divmod": (
        lambda i, j: j * 4 + divmod(i % 8, 2)[0],
        lambda i, j: divmod(i, 8)[0] * 2 + divmod(i, 2)[1],
    ),
    "bits": (lambda i, j: (j << 2) | (i >> 1 & 3), lambda i, j: (i & 1) | (i >> 3 << 1)),
    "the library": (lambda i, j: B.map(i, j)[0][0], lambda i, j: B.map(i, j)[1][0]),
}

LANE, REGISTER = "4 * j + i % 8 // 2", "i % 2 + 2 * (i // 8)"


def lane(misconception, diagnosis, new):
    return Wrong(misconception, diagnosis, (edited(lane_of, (LANE, new)), register_of))


def register(misconception, diagnosis, new):
    return Wrong(misconception, diagnosis, (lane_of, edited(register_of, (REGISTER, new))))


LANE_SKELETON = cell(source.skeleton(lane_of), {})["lane_of"]
REGISTER_SKELETON = cell(source.skeleton(register_of), {})["register_of"]


WRONG = {
    "the lane alone": Wrong("one at a time", "half-done", (lane_of, REGISTER_SKELETON)),
    "the register alone": Wrong("one at a time", "half-done", (LANE_SKELETON, register_of)),
    "a register alone, wrong": Wrong(
        "a register is a word", "words-counted", (LANE_SKELETON, lambda i, j: i // 8)
    ),
    "printed": Wrong("print is return", "wrong-type", (lambda i, j: print(end=""), register_of)),
    "divided": lane("/ is //", "not-whole", "4 * j + i % 8 / 2"),
    "a float that is whole in part": register("/ is //", "not-whole", "i % 2 + 2 * (i / 8)"),
    "rows of A, all of them": lane("A, B and C have one map", "as-in-a", "4 * i + j // 2"),
    "rows beyond the lanes": lane("B has 8 rows", "rows-below-elsewhere", "4 * j + i // 2"),
    "eight lanes a column": lane("B is dealt in columns", "rows-below-elsewhere", "8 * j + i // 2"),
    "columns first": lane("lanes run along a row", "groups-swapped", "j + 8 * (i % 8 // 2)"),
    "column by column": lane("elements are dealt in order", "counted-through", "(16 * j + i) // 4"),
    "round and round": lane("as a coalesced load", "counted-through", "(8 * i + j) % 32"),
    "off by a register": register("the second bit counts 1", "second-pair", "i % 2 + i // 8"),
    "as if there were eight": register("B has A's bits", "second-pair", "i % 2 + 4 * (i // 8)"),
    "the map of A": lane("A, B and C have one map", "as-in-a", "4 * (i % 8) + j // 2"),
    "a lane a row": lane("a lane owns a row", "owns-a-row", "i"),
    "a lane a column": lane("a lane owns a column", "owns-a-column", "j"),
    "no pairs": lane("a register is an element", "pairs-forgotten", "4 * j + i % 4"),
    "row by row": lane("elements are dealt in order", "counted-through", "(8 * i + j) // 4"),
    "lane 0 has all": lane("lanes are alike", "constant", "0"),
    "a pair": lane("a place is a pair", "wrong-type", "(i, j)"),
    "an unknown name": lane("rows are called row", "raises", "4 * j + row"),
    "swapped": register("the order is free", "bits-swapped", "2 * (i % 2) + i // 8"),
    "words": register("a register has 32 bits", "words-counted", "i // 8"),
    "upper rows alone": register("B has 8 rows", "lower-rows-forgotten", "i % 2"),
    "register of A": register("pairs lie in rows", "register-as-in-a", "j % 2 + 2 * (i // 8)"),
    "register 3": register("one is as good as another", "constant", "3"),
}


FOOLING = {
    "in the order of the check": fooling(
        "the check asks in order", "known-cases-only", in_order(lane_of, CASES), register_of
    ),
    "registers in order": fooling(
        "the check asks in order", "known-cases-only", lane_of, in_order(register_of, CASES)
    ),
    "equals everything": fooling(
        "the result compares itself", "wrong-type", lambda i, j: Agrees(0), register_of
    ),
    "a generator": fooling("yield is return", "wrong-type", lambda i, j: (yield 0), register_of),
}

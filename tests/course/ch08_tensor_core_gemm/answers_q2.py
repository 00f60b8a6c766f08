"""Answers to exercise 08.2."""

import itertools

import numpy as np

from gemmlab.course.ch08_tensor_core_gemm import q2_places_of_pieces as places_of_pieces
from gemmlab.course.ch08_tensor_core_gemm.q2_places_of_pieces import CASES, place_of
from tests.course.answers import (
    Agrees,
    Wrong,
    edited,
    fooling,
    for_ever,
    in_order,
    table,
)

SQUARE = [[(i * 3 + j) % 8 for j in range(8)] for i in range(8)]


def by_bits(row, piece):
    low = (row & 1) != (piece & 1)
    middle = (row & 2) != (piece & 2)
    high = (row & 4) != (piece & 4)
    return low + 2 * middle + 4 * high


RIGHT = {
    "turned": (lambda row, piece: (piece + row) % 8,),
    "turned the other way": (lambda row, piece: (piece - row) % 8,),
    "a Latin square": (lambda row, piece: SQUARE[row % 8][piece],),
    "bit by bit": (by_bits,),
    "mirrored, in NumPy": (lambda row, piece: np.int64(7 - piece) ^ (row & 7),),
}

RULE = "piece ^ row % 8"


def of(misconception, diagnosis, new):
    return Wrong(misconception, diagnosis, (edited(place_of, (RULE, new)),))


WRONG = {
    "as it is": of("rows differ, so banks do", "in-rows", "piece"),
    "the row": of("a row is a place", "outside", "row"),
    "the row alone": of("places belong to rows", "taken-twice", "row % 8"),
    "no end": of("there is room behind", "outside", "piece + row"),
    "all bits": of("the row's number is its last digit", "outside", "piece ^ row"),
    "four rows": of("four banks, four rows", "rows-meet", "piece ^ row % 4"),
    "pairs of rows": of("two rows share a line", "rows-meet", "piece ^ row // 2 % 8"),
    "even steps": of("a piece is two words", "rows-meet", "(piece + 2 * row) % 8"),
    "matrices": of("matrices are to differ", "rows-meet", "piece ^ row // 8 % 8"),
    "the first matrix": of(
        "one matrix is enough", "rows-meet", "piece ^ row if row < 8 else piece"
    ),
    "product": of("mixing is multiplying", "taken-twice", "piece * (row + 1) % 8"),
    "or": of("| is ^", "taken-twice", "piece | row % 8"),
    "and": of("& is ^", "taken-twice", "piece & row % 8"),
    "divided": of("/ is //", "not-whole", "(piece + row) % 8 + row / 16"),
    "a place in the tile": of("a place is an element", "outside", "8 * (piece ^ row % 8)"),
    "one for all": of("places are alike", "taken-twice", "0"),
    "two numbers": of("a place is a pair", "wrong-type", "(row, piece)"),
    "an unknown name": of("lanes know", "raises", "piece ^ lane % 8"),
}


def replaces_the_answer(row, piece):
    places_of_pieces.PIECES = 1
    return piece


def by_luck():
    """The places of the cases in their order, for ever."""
    places = itertools.cycle([place_of(*case) for case in CASES[:64]])
    return lambda row, piece: next(places)


def by_lot():
    """Another of the right rules each time that all pieces of eight rows have been asked for."""
    calls = itertools.count()
    return lambda row, piece: (piece + (1 if next(calls) // 64 % 2 else -1) * row) % 8


FOOLING = {
    "by heart": fooling("the cases are in the package", "known-cases-only", table(place_of, CASES)),
    "in their order": fooling(
        "cases come in their order", "known-cases-only", in_order(place_of, CASES)
    ),
    "in their order, for ever": fooling("cases repeat", "known-cases-only", by_luck()),
    "equals everything": fooling("== decides", "wrong-type", lambda *case: Agrees(0)),
    "for ever": fooling("nobody can stop it", "never-ends", for_ever),
    "another each time": fooling("a rule may be drawn", "known-cases-only", by_lot()),
    "fewer pieces": fooling("constants are mine", "in-rows", replaces_the_answer),
}

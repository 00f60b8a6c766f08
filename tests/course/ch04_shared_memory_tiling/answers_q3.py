"""Answers to exercise 04.3."""

from tests.course.answers import Wrong, fooling, for_ever

FIRST = ((2, 1), (0, 1), "too old")
SECOND = ((2, 1), (3, 1), "too new")


def argued():
    writer, column = (2, 1), 3
    return (writer, (column, 1), "too old"), (writer, (column - 3, 1), "too new"), 4 + 1


RIGHT = {
    "computed": (argued,),
    "another reader": (lambda: (((2, 1), (3, 1), "too old"), ((2, 1), (1, 1), "too new"), 5),),
    "lists": (lambda: ([[2, 1], [1, 1], "too old"], [[2, 1], [0, 1], "too new"], 5),),
}


def _wrong(misconception, diagnosis, first=FIRST, second=SECOND, smallest_k=5):
    return Wrong(misconception, diagnosis, (lambda: (first, second, smallest_k),))


WRONG = {
    "no race without the first": _wrong("a warp runs in lock-step", "race-denied", first=None),
    "no race without the second": _wrong("one barrier is enough", "race-denied", second=None),
    "(row, column)": _wrong(
        "threads are (row, column)", "axes-swapped", first=((1, 2), (1, 0), "too old")
    ),
    "another writer": _wrong(
        "the block's first thread writes", "not-the-writer", first=((0, 0), (0, 1), "too old")
    ),
    "itself": _wrong(
        "a thread races with itself", "one-thread", second=((2, 1), (2, 1), "too new")
    ),
    "reader of the column": _wrong(
        "thread (x, y) reads column x of As", "never-meet", first=((2, 1), (2, 3), "too old")
    ),
    "first too new": _wrong(
        "the writer is early", "effect-swapped", first=((2, 1), (0, 1), "too new")
    ),
    "second too old": _wrong(
        "the reader is early", "effect-swapped", second=((2, 1), (3, 1), "too old")
    ),
    "one tile": _wrong("one tile is enough", "one-step-only", smallest_k=4),
    "two whole tiles": _wrong(
        "the second tile must be whole", "smaller-k-races", smallest_k=8
    ),
    "a gap": _wrong("two of three are enough", "not-attempted", smallest_k=...),
    "text": _wrong("any text will do", "wrong-type", first="thread (2, 1)"),
    "outside the block": _wrong(
        "threads count from 1", "wrong-type", second=((2, 1), (4, 1), "too new")
    ),
    "another effect": _wrong("any word will do", "wrong-type", first=((2, 1), (0, 1), "stale")),
    "k = 2.5": _wrong("k is a number", "wrong-type", smallest_k=2.5),
    "raises": Wrong("gaps can be called", "raises", (lambda: (1 / 0, 0, 0),)),
    "two claims": Wrong("k is optional", "wrong-type", (lambda: (FIRST, SECOND),)),
}  # fmt: skip


class Either(str):
    """A text that is every text."""

    def __eq__(self, other):
        return True

    __hash__ = str.__hash__


class AnyThread(tuple):
    """A thread that is every thread."""

    def __eq__(self, other):
        return True

    def __ne__(self, other):
        return False

    __hash__ = tuple.__hash__


FOOLING = {
    "either effect": _wrong(
        "one of them is right", "wrong-type", first=((2, 1), (0, 1), Either("too old"))
    ),
    "any thread": _wrong(
        "one of them is right",
        "wrong-type",
        first=(AnyThread((0, 0)), AnyThread((1, 1)), "too old"),
    ),
    "threads in fractions": _wrong(
        "int() rounds", "wrong-type", first=((2.7, 1.2), (0, 1), "too old")
    ),
    "threads as text": _wrong("digits are numbers", "wrong-type", first=("21", "01", "too old")),
    "for ever": fooling("nobody can stop it", "never-ends", for_ever),
    "a truth for a number": _wrong("True is 1", "wrong-type", smallest_k=True),
}

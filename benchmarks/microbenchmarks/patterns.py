"""Which addresses the lanes of a warp have when they load or store together."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from benchmarks.microbenchmarks.loop import WARP

LINE, ROW = 128, 16_384  # of a cache, and of a matrix with 4096 columns of words [B]


class Pattern(NamedTuple):
    """Bytes that a lane moves, the offset of each lane, and both in words."""

    width: int
    offset: Callable[[int], int]
    words: str

    @property
    def lanes(self) -> tuple[int, ...]:
        """The offset of each lane [B]."""
        return tuple(map(self.offset, range(WARP)))


SHARED = {
    "32_own": Pattern(4, lambda lane: 4 * lane, "neighbouring words"),
    "64_own": Pattern(8, lambda lane: 8 * lane, "neighbouring 8 bytes"),
    "128_own": Pattern(16, lambda lane: 16 * lane, "neighbouring 16 bytes"),
    "32_same": Pattern(4, lambda lane: 0, "one word"),
    "128_same": Pattern(16, lambda lane: 0, "the same 16 bytes"),
    "32_two": Pattern(4, lambda lane: 32 * (lane // 16), "one word in each half of the warp"),
    "32_sixteen": Pattern(4, lambda lane: 4 * (lane % 16), "16 words, the halves the same"),
    "64_sixteen": Pattern(8, lambda lane: 8 * (lane % 16), "16 times 8 bytes, the halves the same"),
    "128_two": Pattern(16, lambda lane: 16 * (lane // 16), "the same 16 bytes in each half"),
    "128_eight": Pattern(
        16, lambda lane: 16 * (lane % 8), "8 times 16 bytes, the quarters the same"
    ),
    "128_sixteen": Pattern(
        16, lambda lane: 16 * (lane % 16), "16 times 16 bytes, the halves the same"
    ),
    "128_four_in_turn": Pattern(
        16, lambda lane: 16 * (lane // 8), "the same 16 bytes in each quarter"
    ),
    "128_warp_tile_a": Pattern(
        16, lambda lane: 16 * (lane // 16 * 2 + lane % 2), "16 bytes as a warp tile's rows of A"
    ),
    "128_warp_tile_b": Pattern(
        16, lambda lane: 16 * (lane // 2 % 8), "16 bytes as a warp tile's columns of B"
    ),
    "32_conflict_2": Pattern(4, lambda lane: 8 * lane, "words, two in each bank that is used"),
    "32_conflict_4": Pattern(4, lambda lane: 16 * lane, "words, four in each bank that is used"),
    "32_conflict_32": Pattern(4, lambda lane: 128 * lane, "words that are all in one bank"),
    "128_conflict_2": Pattern(
        16, lambda lane: 32 * lane, "16 bytes, two in each bank that is used"
    ),
}


def _lines(width: int, count: int) -> Pattern:
    """As many neighbouring lanes in each of `count` lines."""
    each = WARP // count
    return Pattern(
        width,
        lambda lane: lane // each * LINE + lane % each * width,
        f"{width} bytes in {count} lines, {each} neighbours in each",
    )


def _stride(words: int) -> Pattern:
    return Pattern(4, lambda lane: 4 * words * lane, f"words, each {words} after the one before")


GLOBAL = {
    "32_own": Pattern(4, lambda lane: 4 * lane, "neighbouring words"),
    "32_same": Pattern(4, lambda lane: 0, "one word"),
    **{f"32_lines_{n}": _lines(4, n) for n in (2, 4, 8, 16, 32)},
    **{f"32_stride_{n}": _stride(n) for n in (2, 4, 8, 16, 32)},
    "32_rows_2_of_one_word": Pattern(
        4, lambda lane: lane // 16 * ROW, "one word in each of two rows of a matrix"
    ),
    "32_rows_2": Pattern(
        4, lambda lane: lane // 16 * ROW + 4 * (lane % 16), "16 words in each of two rows"
    ),
    "32_column": Pattern(4, lambda lane: lane * ROW, "words of a matrix's column"),
    "64_own": Pattern(8, lambda lane: 8 * lane, "neighbouring 8 bytes"),
    "128_own": Pattern(16, lambda lane: 16 * lane, "neighbouring 16 bytes"),
    "128_same": Pattern(16, lambda lane: 0, "the same 16 bytes"),
    "128_two": Pattern(16, lambda lane: 16 * (lane // 16), "the same 16 bytes in each half"),
    **{f"128_lines_{n}": _lines(16, n) for n in (8, 16, 32)},
    "128_column": Pattern(
        16, lambda lane: lane * ROW, "16 bytes of a matrix's rows, one below the other"
    ),
}

_FORMS = {4: "u32 {0}", 8: "v2.u32 {{{0}, {1}}}", 16: "v4.u32 {{{0}, {1}, {2}, {3}}}"}


def form(width: int, names: tuple[str, ...]) -> str:
    """PTX: the type and the registers of a load or a store of `width` bytes.

    >>> form(8, ("r0", "r1"))
    'v2.u32 {r0, r1}'
    """
    return _FORMS[width].format(*names)

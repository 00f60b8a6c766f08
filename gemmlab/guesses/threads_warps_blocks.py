"""Answers to the questions of chapter 03, threads, warps and blocks."""

from __future__ import annotations

import numpy as np

from gemmlab.guesses.answer import Answer


def rows() -> Answer:
    """Rows that one warp of a block of 16×16 threads covers."""
    width, warp = 16, 32
    y = np.arange(warp) // width
    return Answer(
        len(set(y)),
        f"A warp is {warp} threads with successive numbers, $x$ first: {width} of them fill a row.",
        {
            1: "That holds for a block as wide as a warp; this one is half as wide.",
            width: "You counted the rows of the block; it has eight warps.",
            warp: "You counted threads; those side by side share a row.",
        },
    )

"""Tilings: how one output matrix is cut into thread blocks, and a block into threads."""

from __future__ import annotations

from dataclasses import dataclass

from gemmlab.problem import Gemm, known_format, whole_number


@dataclass(frozen=True)
class Tiling:
    """Sizes of the nested tiles, in elements.

    block : (bm, bn, bk), the part of C that a thread block computes and the step along k
    thread : (tm, tn), the part of C that one thread computes
    stages : tiles of A and of B held in shared memory at once

    Raises TypeError or ValueError for sizes that are not positive whole numbers, and ValueError
    where thread tiles do not divide the block tile.

    >>> t = Tiling(block=(16, 16, 16))
    >>> t.threads, t.shared_bytes("float32"), t.grid(Gemm(100, 50, 20))
    (256, 2048, (4, 7))
    """

    block: tuple[int, int, int]
    thread: tuple[int, int] = (1, 1)
    stages: int = 1

    def __post_init__(self) -> None:
        for name, length in (("block", 3), ("thread", 2)):
            sizes = getattr(self, name)
            if not isinstance(sizes, (tuple, list)) or len(sizes) != length:
                raise TypeError(f"{name}={sizes!r} is not a tuple of {length} sizes")
            sizes = tuple(whole_number(f"{name}[{i}]", s) for i, s in enumerate(sizes))
            object.__setattr__(self, name, sizes)
        object.__setattr__(self, "stages", whole_number("stages", self.stages))
        for axis, tile, part in zip("mn", self.block, self.thread, strict=False):
            if tile % part:
                raise ValueError(
                    f"thread tile of {part} does not divide the block tile of {tile} along {axis}; "
                    f"use one of {', '.join(str(d) for d in range(1, tile + 1) if tile % d == 0)}"
                )

    @classmethod
    def square(cls, tile: int) -> Tiling:
        """A block of tile×tile threads that steps along k by the same tile."""
        return cls(block=(tile, tile, tile))

    def __str__(self) -> str:
        text = "×".join(map(str, self.block))
        if self.thread != (1, 1):
            text += ", thread " + "×".join(map(str, self.thread))
        return text + (f", {self.stages} stages" if self.stages > 1 else "")

    @property
    def threads(self) -> int:
        """Threads of a block, (bm/tm)·(bn/tn)."""
        return (self.block[0] // self.thread[0]) * (self.block[1] // self.thread[1])

    def shared_bytes(self, dtype: str) -> int:
        """Shared memory for the tiles of A and B [B], stages·s·(bm·bk + bk·bn)."""
        bm, bn, bk = self.block
        return self.stages * known_format("dtype", dtype).bytes * (bm * bk + bk * bn)

    def grid(self, problem: Gemm) -> tuple[int, int]:
        """Blocks along n and along m, (⌈n/bn⌉, ⌈m/bm⌉): x runs along the rows of C."""
        bm, bn, _ = self.block
        return -(-problem.n // bn), -(-problem.m // bm)

    def steps(self, problem: Gemm) -> int:
        """Tiles along k, ⌈k/bk⌉."""
        return -(-problem.k // self.block[2])

    def padded_flops(self, problem: Gemm) -> int:
        """Operations on whole tiles [FLOP]: 2mnk with every size rounded up to its tile."""
        (across, down), (bm, bn, bk) = self.grid(problem), self.block
        return 2 * (down * bm) * (across * bn) * (self.steps(problem) * bk)

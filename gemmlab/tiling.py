"""Tilings: how C is cut into tiles of thread blocks, of warps and of threads."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gemmlab.arguments import whole_number
from gemmlab.problem import Gemm

WARP = 32  # threads


@dataclass(frozen=True)
class Tiling:
    """Sizes of the nested tiles, in elements.

    block : (bm, bn, bk), the part of C that a thread block computes and the step along k
    thread : (tm, tn), the part of C that one thread computes
    stages : tiles of A and of B held in shared memory at once
    warp : (wm, wn), the part of C that one warp computes; None where a kernel has no warp tiles
    split : parts of the work along k, for kernels that divide it among blocks; it changes their
        launch alone, never their source

    Raises TypeError or ValueError for sizes that are not positive whole numbers, and ValueError
    where a tile does not divide the one around it, or a warp tile is not that of 32 threads.

    >>> t = Tiling(block=(16, 16, 16))
    >>> t.threads, t.grid(Gemm(100, 50, 20)), t.steps(Gemm(100, 50, 20))
    (256, (4, 7), 2)
    """

    block: tuple[int, int, int]
    thread: tuple[int, int] = (1, 1)
    stages: int = 1
    warp: tuple[int, int] | None = None
    split: int = 1

    def __post_init__(self) -> None:
        for name, length in (("block", 3), ("thread", 2), ("warp", 2)):
            sizes = getattr(self, name)
            if name == "warp" and sizes is None:
                continue
            if not isinstance(sizes, (tuple, list)) or len(sizes) != length:
                raise TypeError(f"{name}={sizes!r} is not a tuple of {length} sizes")
            sizes = tuple(whole_number(f"{name}[{i}]", s) for i, s in enumerate(sizes))
            object.__setattr__(self, name, sizes)
        for name in ("stages", "split"):
            object.__setattr__(self, name, whole_number(name, getattr(self, name)))
        self._check_nested("block", self.block[:2], "warp", self.warp or self.block[:2])
        self._check_nested("warp" if self.warp else "block", self.warp or self.block[:2],
                           "thread", self.thread)  # fmt: skip
        if self.warp and self.warp_lanes[0] * self.warp_lanes[1] != WARP:
            down, across = self.warp_lanes
            raise ValueError(
                f"warp tile {self.warp} of thread tiles {self.thread} is that of {down}×{across} "
                f"threads; a warp has {WARP}"
            )

    @staticmethod
    def _check_nested(outer: str, tile: tuple, inner: str, part: tuple) -> None:
        for axis, whole, size in zip("mn", tile, part, strict=True):
            if whole % size:
                fits = ", ".join(map(str, _divisors(whole)))
                raise ValueError(
                    f"{inner} tile of {size} does not divide the {outer} tile of {whole} along "
                    f"{axis}; use one of {fits}"
                )

    @classmethod
    def square(cls, tile: int) -> Tiling:
        """Return a block of tile×tile threads that steps along k by the same tile."""
        return cls(block=(tile, tile, tile))

    def __str__(self) -> str:
        text = "×".join(map(str, self.block))
        if self.warp:
            text += ", warp " + "×".join(map(str, self.warp))
        if self.thread != (1, 1):
            text += ", thread " + "×".join(map(str, self.thread))
        if self.stages > 1:
            text += f", {self.stages} stages"
        return text + (f", split {self.split}" if self.split > 1 else "")

    @property
    def unsplit(self) -> Tiling:
        """The tiling with the same tiles and k whole."""
        return replace(self, split=1) if self.split > 1 else self

    @property
    def threads(self) -> int:
        """Threads of a block, (bm/tm)·(bn/tn)."""
        return (self.block[0] // self.thread[0]) * (self.block[1] // self.thread[1])

    @property
    def warp_lanes(self) -> tuple[int, int]:
        """Threads of a warp tile along m and along n, (wm/tm, wn/tn)."""
        if self.warp is None:
            raise ValueError(f"tiling {self} has no warp tiles; use warp=(wm, wn)")
        return self.warp[0] // self.thread[0], self.warp[1] // self.thread[1]

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


def _divisors(number: int, most: int = 1024) -> list[int]:
    """List the divisors of a number, up to `most`, which is the most threads that a block has.

    >>> _divisors(12)
    [1, 2, 3, 4, 6, 12]
    """
    return [d for d in range(1, min(number, most) + 1) if number % d == 0]

"""Random kernels of loads and stores, without loops, to compare with what a compiler makes."""

from __future__ import annotations

import linecache
import random
from collections.abc import Callable

from numpy import float32

from gemmlab import cuda

HEAD = """def kernel(P, Q, R, n):
    S = cuda.shared.array(64, float32)
    i = cuda.grid(1)
    j = cuda.threadIdx.x
    w = n
    a = float32(1)
    b = float32(n)
"""
TAIL = """    R[i] = a + b
    R[j + 64] = S[j]
    R[j + 128] = S[j]
"""


def random_kernel(seed: int) -> Callable:
    """A kernel of three global arrays, P, Q and R, and a shared one, S."""
    text = HEAD + "".join(Writer(random.Random(seed)).block(1, 2, 6)) + TAIL
    name = f"<random accesses {seed}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    scope = {"cuda": cuda, "float32": float32}
    exec(compile(text, name, "exec"), scope)
    return scope["kernel"]


class Writer:
    """Writes statements by chance."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance

    def block(self, depth: int, least: int, most: int) -> list[str]:
        """So many statements, `depth` levels deep."""
        return [
            line for _ in range(self.chance.randint(least, most)) for line in self.statement(depth)
        ]

    def statement(self, depth: int) -> list[str]:
        indent = "    " * depth
        kind = self.chance.choices(
            ("sum", "store", "update", "barrier", "index", "if"), (9, 4, 1, 1, 1, 4)
        )[0]
        if kind == "store":
            return [f"{indent}{self.element('PQS')} = {self.value()}\n"]
        if kind == "update":
            return [f"{indent}{self.element('PS')} += {self.value()}\n"]
        if kind == "barrier":
            return [f"{indent}cuda.syncthreads()\n"]
        if kind == "index":
            return [f"{indent}w += 3\n"]
        if kind == "if" and depth < 3:
            out = [f"{indent}if {self.condition()}:\n", *self.block(depth + 1, 1, 2)]
            if self.chance.random() < 0.6:
                out += [f"{indent}else:\n", *self.block(depth + 1, 1, 2)]
            return out
        return [f"{indent}{self.chance.choice('ab')} += {self.value()}\n"]

    def element(self, arrays: str) -> str:
        return f"{self.chance.choice(arrays)}[{self.chance.choice(('i', 'i', 'j', 'i + 1', 'w'))}]"

    def value(self, depth: int = 0) -> str:
        kind = self.chance.random()
        if kind < 0.55:
            return self.element("PPQS")
        if kind < 0.7 or depth > 1:
            return self.chance.choice(("a", "b", "float32(2)"))
        first, second = self.value(depth + 1), self.value(depth + 1)
        return f"({first} {self.chance.choice('+-*')} {second})"

    def condition(self) -> str:
        more = f" and {self.element('PQS')} < b" if self.chance.random() < 0.25 else ""
        return f"{self.element('PQS')} > {self.chance.choice('ab')}{more}"

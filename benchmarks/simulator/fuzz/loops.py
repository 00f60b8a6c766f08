"""Random loops, run in lock-step and thread by thread: all that a launch tells must be the same.

    python -m benchmarks.simulator.fuzz.loops 1000 --seed 1 [--compiled]

Without --compiled, what Numba would compile runs in Python, which takes less time for so few turns.
"""

from __future__ import annotations

import argparse
import importlib.util
import random
import tempfile
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from gemmlab import simulate
from gemmlab.simt.threads import rest

HEADER = """\
import math

from numpy import float32, int32, int64, uint64

from gemmlab import cuda


def mixed(s, k):
    t = (s << uint64(13)) ^ s
    t ^= t >> uint64(7)
    return t + uint64(k)


def kernel(x, y, f, s, n):
    i = cuda.grid(1)
    a = x[i % x.size]
    b = i + 1
    c = int32(i * 7)
    d = 0.5 * i
    e = float32(1.5)
    u = uint64(i + 3)
    w = a < b
    r = s[i]
    p = cuda.local.array(4, int64)
    for z in range(4):
        p[z] = z
"""
SIZES = (5, 40, 64)


class Writer:
    """Writes a kernel of a few loops at random."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.count = 0
        if self.random.random() < 0.4:  # what a barrier may put before
            self.say(1, self.pick("y[i] = b", "y[(i + 1) % 32] = b", "a += y[(i + 1) % 64]"))
            self.say(
                1, self.pick("cuda.syncthreads()", "cuda.syncthreads()", "cuda.syncwarp()", "pass")
            )
        if self.random.random() < 0.3:  # one thread
            self.say(1, "if i == 1:")
            self.loop(2, 2)
        else:
            for _ in range(self.random.randint(1, 2)):
                self.loop(1, 2)
        self.say(1, "if i < f.size:")
        self.say(2, "f[i] = a + b + c + d + e + p[1] + (u >> uint64(40))")

    def say(self, indent: int, text: str) -> None:
        self.lines.append("    " * indent + text)

    def pick(self, *texts: str) -> str:
        return self.random.choice(texts)

    def whole(self) -> str:
        one = self.pick("a", "b", "i", "c", "p[b % 4]", "x[abs(a) % x.size]", "x[i % 5]")
        other = self.pick("a", "b", "3", "7", "n", "-2")
        return self.pick(
            f"({one} + {other}) % 97", f"{one} * {other} & 0xFFFF", f"min({one}, {other})",
            f"({one} if {self.test()} else {other}) % 50", f"{one} // 3 - {other}",
            f"int(d) % 9 + {other}", f"({one} ^ b) >> 2", f"int64(int32({one} * 3))",
            f"-{one} % 89", f"({one} << 1) + w", "(a & 63) >> (b & 7)",
        )  # fmt: skip

    def real(self) -> str:
        return self.pick(
            "d * 0.75 + a",
            "math.sqrt(abs(d)) + b",
            "d / (b + 0.5)",
            "float(a) - d",
            "f[i % f.size]",
        )

    def test(self) -> str:
        one = self.pick(
            "a < b",
            "d > 3.0",
            "a % 3 == b % 2",
            "e <= float32(2)",
            "i % 2 == 0",
            "u & uint64(1)",
            "w",
            "0 < a < 30",
            "y.size > 3 * a",
        )
        other = self.pick("a > 4", "b != 7", "n > a")
        return self.pick(one, one, f"{one} and {other}", f"not {one} or {other}")

    def statement(self, indent: int, depth: int) -> None:
        kinds = ["whole"] * 4 + ["real", "single", "bits", "own", "local", "update", "any", "index"]
        kinds += ["if"] * 3 + ["break", "continue", "swap"] + ["loop"] * 2 * (depth > 0)
        before = len(self.lines)
        getattr(self, f"of_{self.random.choice(kinds)}")(indent, depth)
        if len(self.lines) == before:
            self.say(indent, "pass")

    def of_whole(self, indent: int, depth: int) -> None:
        self.say(indent, f"{self.pick('a', 'b')} = {self.whole()}")

    def of_real(self, indent: int, depth: int) -> None:
        self.say(indent, f"d = {self.real()}")

    def of_single(self, indent: int, depth: int) -> None:
        self.say(indent, self.pick("e = e * e - float32(0.3)", "e = float32(d) + e * float32(0.1)"))

    def of_bits(self, indent: int, depth: int) -> None:
        self.say(indent, self.pick("u = mixed(u, 5)", "u ^= uint64(a)", "c = int32(a % 1000)"))

    def of_own(self, indent: int, depth: int) -> None:
        self.say(indent, self.pick("y[i % y.size] = a", "y[i] = b", "y[i] += 1", "s[i].v = d"))

    def of_local(self, indent: int, depth: int) -> None:
        self.say(indent, self.pick("p[a % 4] = b", "p[2] += a", "b = p[abs(a) % 4]"))

    def of_update(self, indent: int, depth: int) -> None:
        self.say(
            indent,
            self.pick(
                "a += 1", "b -= a", "w = b > 9", "r.k = a", "d += s[i].v", "s[i].k += 1", "d *= 0.5"
            ),
        )

    def of_any(self, indent: int, depth: int) -> None:
        if self.random.random() < 0.15:
            self.say(indent, self.pick("y[a % 3] = b", "a = y[b % 5]", "y[a] = 1", "b //= a"))

    def of_index(self, indent: int, depth: int) -> None:
        self.say(indent, self.pick("a = x[i % x.size] + a % 11", "b = y[i] + 1"))

    def of_swap(self, indent: int, depth: int) -> None:
        self.say(indent, "a, b = b, a")

    def of_if(self, indent: int, depth: int) -> None:
        self.say(indent, f"if {self.test()}:")
        self.statement(indent + 1, depth)
        if self.random.random() < 0.4:
            self.say(indent, "else:")
            self.statement(indent + 1, depth)

    def of_break(self, indent: int, depth: int) -> None:
        if self.random.random() < 0.5:
            self.say(indent, f"if {self.pick('a % 13 == 5', 'd > 50.0', 'b > 60')}:")
            self.say(indent + 1, "break")

    def of_continue(self, indent: int, depth: int) -> None:
        self.say(indent, f"if {self.pick('a % 5 == 1', 'b % 7 == 2')}:")
        self.say(indent + 1, "continue")

    def of_loop(self, indent: int, depth: int) -> None:
        self.loop(indent, depth - 1)

    def loop(self, indent: int, depth: int) -> None:
        self.count += 1
        k = f"k{self.count}"
        if self.random.random() < 0.3:
            self.say(indent, f"{k} = {self.pick('0', 'b % 3', 'i % 4')}")
            self.say(indent, f"while {k} < {self.pick('7', 'n', 'a % 9')}:")
            self.say(indent + 1, f"{k} += 1")
        else:
            bounds = self.pick("9", "n", "a % 11", "b % 7, 12", "n, 0, -1", "i % 3, n, 2")
            self.say(indent, f"for {k} in range({bounds}):")
            self.say(indent + 1, f"a = (a + {k}) % 61")
        for _ in range(self.random.randint(1, 4)):
            self.statement(indent + 1, depth)


def source(seed: int) -> str:
    """The text of a module with a kernel."""
    return HEADER + "\n".join(Writer(seed).lines) + "\n"


def outcome(kernel: Any, seed: int, seconds: float) -> tuple[tuple, int]:
    """What a launch leaves and tells; and how many loops ran thread by thread.

    seconds : that a loop takes in lock-step, for this to pay
    """
    rng = np.random.default_rng(seed)
    size = SIZES[seed % 3]
    x, y = rng.integers(-20, 90, size), rng.integers(0, 50, 64)
    f = rng.random(40)
    s = np.zeros(64, [("v", np.float64), ("k", np.int64)])
    ran: list[bool] = []

    def run(*args: Any) -> Any:
        found = original(*args)  # which may raise
        ran.append(found is not None)
        return found

    original = rest.run
    times = {"ALONE": seconds, "CALLED": seconds, "TOGETHER": seconds}
    with mock.patch.multiple(rest, **times, FIRST=2, run=run):
        try:
            report = simulate(kernel, 2, 32, x, y, f, s, 10, on_hazard="collect", max_steps=60)
            counts = {
                file: {line: dict(counted) for line, counted in sorted(lines.items())}
                for file, lines in report.by_file.items()
            }
            told: tuple = (str(report), report.hazards, report.notes, counts)
        except Exception as error:
            told = (type(error).__name__, str(error))
    return (told, *(a.tobytes() for a in (x, y, f, s))), sum(ran)


def differences(seed: int, folder: str, compiled: bool = False) -> tuple[list[tuple], int]:
    """Where the two ways differ; and how many loops ran thread by thread."""
    path = Path(folder) / f"loops_{seed}.py"
    path.write_text(source(seed))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    first, _ = outcome(module.kernel, seed, 1e9)
    with mock.patch.object(rest, "_compiled", rest._compiled if compiled else rest.as_it_is):
        second, ran = outcome(module.kernel, seed, 0)
    return [pair for pair in zip(first, second, strict=True) if pair[0] != pair[1]], ran


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--compiled", action="store_true", help="with Numba's compiler")
    arguments = parser.parse_args()
    wrong = loops = kernels = 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(arguments.seed, arguments.seed + arguments.count):
            found, ran = differences(seed, folder, arguments.compiled)
            loops, kernels = loops + ran, kernels + (ran > 0)
            if found:
                wrong += 1
                print(f"seed {seed}: {str(found)[:2000]}", flush=True)
    print(
        f"{wrong} of {arguments.count} differ; {loops} loops of {kernels} kernels, thread by thread"
    )


if __name__ == "__main__":
    main()

"""Random kernels whose lanes run one by one, as functions of one thread and in lock-step form.

    python -m benchmarks.simulator.fuzz.lone 1000 --seed 1

All that a launch tells must be the same: results, counts, hazards, notes.
"""

from __future__ import annotations

import argparse
import importlib.util
import random
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from gemmlab import simulate
from gemmlab.simt import launch as launches
from gemmlab.simt.machine import fibers, lone_fibers
from gemmlab.simt.machine.loops import Grain

HEADER = """\
from numpy import float32, int32, int64, uint32

from gemmlab import cuda


@cuda.jit(device=True)
def acquire(lock, i):
    while cuda.atomic.cas(lock, i, 0, 1) != 0:
        pass
    cuda.threadfence()


@cuda.jit(device=True)
def release(lock, i):
    cuda.threadfence()
    cuda.atomic.exch(lock, i, 0)


@cuda.jit(device=True)
def smaller(x, k):
    v = x[5 + k % 6]
    return min(v, int64(k))


def kernel(lock, flag, x, y, f, u, n):
    i = cuda.grid(1)
    a = x[5 + i % 6] % 7
    b = i + 1
    d = 0.5 * i
"""


class Writer:
    """Writes a kernel at random, of locks, waits, atomics, and what threads do beside them."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.names = 0
        for _ in range(self.random.randint(2, 5)):
            self.statement(1, 2)

    def say(self, indent: int, text: str) -> None:
        self.lines.append("    " * indent + text)

    def pick(self, *texts: str) -> str:
        return self.random.choice(texts)

    def whole(self) -> str:
        one = self.pick("a", "b", "i", "x[5 + i % 5]", "smaller(x, a)", "y[i + 8]")
        other = self.pick("a", "b", "3", "n", "-2")
        return self.pick(f"({one} + {other}) % 97", f"{one} * {other} & 0xFF", f"{one} - {other}",
                         f"({one} if {self.test()} else {other})", f"({one} ^ 5) >> 1")  # fmt: skip

    def test(self) -> str:
        return self.pick("a < b", "i % 3 == 0", "d > 2.0", "a > 3 and b < 9", "i % 2 == 1 or a < 2")

    def statement(self, indent: int, depth: int) -> None:
        kinds = (
            ["lock"] * 4 + ["atomic"] * 3 + ["own"] * 2 + ["other", "number", "fence", "bounded"]
        )
        kinds += ["if", "for", "wait", "ticket", "return", "long"] * (depth > 0)
        getattr(self, f"of_{self.random.choice(kinds)}")(indent, depth)

    def some(self, indent: int, depth: int) -> None:
        for _ in range(self.random.randint(1, 2)):
            self.statement(indent, depth)

    def critical(self, indent: int) -> None:
        """What a lock protects, if all take it, and fences are there."""
        self.say(indent, self.pick("x[0] += a", "x[i % 3] += 1", "f[0] = f[0] + d", "y[2] += b",
                                   "a = x[1]", "y[1] = a", "x[0] = x[0] * 3 + i"))  # fmt: skip

    def fence(self, indent: int) -> None:
        if self.random.random() < 0.95:
            self.say(indent, self.pick("cuda.threadfence()", "cuda.threadfence()",
                                       "cuda.threadfence_block()"))  # fmt: skip

    def of_lock(self, indent: int, depth: int) -> None:
        which = self.pick("0", "0", "0", "i % 2")
        kind = self.pick("cas", "exch", "flag", "function", "backoff")
        if kind == "function":
            self.say(indent, f"acquire(lock, {which})")
            self.critical(indent)
            self.say(indent, f"release(lock, {which})")
            return
        if kind == "flag":
            self.names += 1
            self.say(indent, f"w{self.names} = True")
            self.say(indent, f"while w{self.names}:")
            self.say(indent + 1, f"if cuda.atomic.cas(lock, {which}, 0, 1) == 0:")
            indent += 2
        elif kind == "backoff":
            self.names += 1
            self.say(indent, f"t{self.names} = 0")
            self.say(indent, f"while cuda.atomic.cas(lock, {which}, 0, 1) != 0:")
            self.say(indent + 1, f"t{self.names} += 1")
        else:
            take = f"cas(lock, {which}, 0, 1)" if kind == "cas" else f"exch(lock, {which}, 1)"
            self.say(indent, f"while cuda.atomic.{take} != 0:")
            self.say(indent + 1, self.pick("pass", "cuda.nanosleep(10)"))
        self.fence(indent)
        self.critical(indent)
        if depth and self.random.random() < 0.3:
            self.statement(indent, 0)
        self.fence(indent)
        self.say(indent, f"cuda.atomic.exch(lock, {which}, 0)")
        if kind == "flag":
            self.say(indent, f"w{self.names} = False")

    def of_atomic(self, indent: int, depth: int) -> None:
        name = self.pick("add", "sub", "max", "min", "exch", "and_", "or_", "xor")
        where = self.pick("i % 4 + 4", "4", "a % 2 + 5")
        call = f"cuda.atomic.{name}(y, {where}, {self.pick('a', 'b', '1', 'i')})"
        other = self.pick(f"cuda.atomic.{self.pick('inc', 'dec')}(u, i % 3, uint32(5))",
                          "cuda.atomic.add(f, 1, d)", "cuda.atomic.max(f, 2, d)",
                          "cuda.atomic.compare_and_swap(flag, 0, i)")  # fmt: skip
        call = self.pick(call, call, other)
        self.say(indent, self.pick(call, f"a = int64({call}) % 50"))

    def of_own(self, indent: int, depth: int) -> None:
        self.say(indent, self.pick("y[i + 8] = a", "y[i + 8] += b", "f[i + 8] = d", "d = f[i + 8]"))

    def of_other(self, indent: int, depth: int) -> None:
        if self.random.random() < 0.1:  # races, or outside, or too wide
            self.say(indent, self.pick("x[1] = a", "y[i % 4] = b", "a = y[(i + 9) % y.size]",
                                       "y[i * 9] = 1", "y[3] = b << 31", "f[0] = d"))  # fmt: skip
        else:
            self.say(indent, self.pick("a = x[5 + i % 6]", "b += y[i + 8]"))

    def of_number(self, indent: int, depth: int) -> None:
        self.say(indent, self.pick(f"a = {self.whole()}", f"b = {self.whole()}", "d = d * 0.5 + a",
                                   "d = float(f[i + 8])"))  # fmt: skip

    def of_fence(self, indent: int, depth: int) -> None:
        self.say(indent, "cuda.threadfence()")

    def of_bounded(self, indent: int, depth: int) -> None:
        self.names += 1
        self.say(indent, f"for k{self.names} in range({self.pick('3', '100')}):")
        self.say(indent + 1, "if cuda.atomic.cas(lock, 1, 0, 1) == 0:")
        self.say(indent + 2, "cuda.threadfence()")
        self.critical(indent + 2)
        self.say(indent + 2, "cuda.threadfence()")
        self.say(indent + 2, "cuda.atomic.exch(lock, 1, 0)")
        self.say(indent + 2, "break")

    def of_if(self, indent: int, depth: int) -> None:
        self.say(indent, f"if {self.test()}:")
        self.some(indent + 1, depth - 1)
        if self.random.random() < 0.4:
            self.say(indent, "else:")
            self.some(indent + 1, depth - 1)

    def of_for(self, indent: int, depth: int) -> None:
        self.names += 1
        self.say(indent, f"for k{self.names} in range({self.pick('2', '3', 'a % 4')}):")
        self.some(indent + 1, depth - 1)
        if self.random.random() < 0.3:
            self.say(indent + 1, f"if {self.test()}:")
            self.say(indent + 2, self.pick("break", "continue"))

    def of_wait(self, indent: int, depth: int) -> None:
        """A flag that one thread sets, and others wait for; now and then nobody sets it."""
        setter = self.pick("0", "5", "n - 1", "n - 1", "99" if self.random.random() < 0.3 else "3")
        self.say(indent, f"if i == {setter}:")
        self.say(indent + 1, "cuda.threadfence()")
        sets = self.pick("cuda.atomic.exch(flag, 1, 1)", "cuda.atomic.add(flag, 1, 1)")
        self.say(indent + 1, sets)
        self.say(indent, f"elif i % {self.pick('2', '3', '50')} == 1:")
        look = self.pick("cuda.atomic.add(flag, 1, 0) == 0", "cuda.atomic.max(flag, 1, 0) < 1",
                         "flag[1] == 0")  # fmt: skip
        self.say(indent + 1, f"while {look}:")
        self.say(indent + 2, self.pick("pass", "cuda.nanosleep(5)", "b += 1"))

    def of_ticket(self, indent: int, depth: int) -> None:
        self.names += 1
        own = f"m{self.names}"
        self.say(indent, f"{own} = cuda.atomic.add(flag, 2, 1)")
        self.say(indent, f"while cuda.atomic.add(flag, 3, 0) != {own}:")
        self.say(indent + 1, "pass")
        self.fence(indent)
        self.critical(indent)
        self.fence(indent)
        self.say(indent, "cuda.atomic.add(flag, 3, 1)")

    def of_return(self, indent: int, depth: int) -> None:
        self.say(indent, f"if {self.pick('i >= n', 'i % 7 == 6', 'a == 3')}:")
        self.say(indent + 1, "return")

    def of_long(self, indent: int, depth: int) -> None:
        self.names += 1
        name = f"c{self.names}"
        self.say(indent, f"{name} = {self.pick('a', 'b', '27')}")
        self.say(indent, f"while {name} > 1:")
        self.say(indent + 1, f"{name} = {name} // 2 if {name} % 2 == 0 else {name} - 3")


def source(seed: int) -> str:
    """The module of a random kernel."""
    lines = Writer(seed).lines
    return HEADER + "\n".join([*lines, "    if i < f.size:", "        f[i + 8] += d", ""])


def outcome(
    kernel: Callable, grid: int, block: int, arguments: tuple, grain: str, **options: Any
) -> tuple[tuple, list[str]]:
    """What a launch tells and leaves in its arrays, begun in a grain; in which grains it ended."""
    arguments = tuple(np.copy(a) if isinstance(a, np.ndarray) else a for a in arguments)
    ran, original, ended = launches._ran, fibers.Fibers.run, []

    def begun(*given: Any) -> Any:
        return ran(*given[:-1], replace(given[-1], name=grain))

    def run(self: fibers.Fibers) -> None:
        original(self)
        ended.append(self.grain.name)

    with (
        mock.patch.object(launches, "_ran", begun),
        mock.patch.object(lone_fibers, "OTHERWISE", Grain("lane")),
        mock.patch.object(fibers.Fibers, "run", run),
    ):
        try:
            report = simulate(kernel, grid, block, *arguments, on_hazard="collect", **options)
            counts = {
                file: {line: dict(sorted(counted.items())) for line, counted in lines.items()}
                for file, lines in report.by_file.items()
            }
            told: tuple = (report.hazards, report.notes, counts, str(report))
        except Exception as error:
            told = (type(error).__name__, str(error))
    return (told, *(a.tobytes() for a in arguments if isinstance(a, np.ndarray))), ended


def differences(seed: int, folder: str) -> tuple[list[tuple], bool]:
    """Where the two ways differ; and whether the function of one thread ran to its end."""
    path = Path(folder) / f"lone_{seed}.py"
    path.write_text(source(seed))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    rng = np.random.default_rng(seed)
    grid, block = ((1, 9), (2, 5), (3, 32), (2, 40))[seed % 4]
    arguments = (
        *(np.zeros(2, np.int32), np.zeros(4, np.int32), rng.integers(-9, 60, 11)),
        *(rng.integers(0, 50, 120).astype(np.int32), rng.random(120), np.zeros(3, np.uint32)),
        grid * block,
    )
    launch = module.kernel, grid, block, arguments
    first, _ = outcome(*launch, "lane", max_steps=300)
    second, ended = outcome(*launch, "lone", max_steps=300)
    different = [pair for pair in zip(first, second, strict=True) if pair[0] != pair[1]]
    return different, ended == ["lone"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    wrong = kernels = 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(arguments.seed, arguments.seed + arguments.count):
            found, ran = differences(seed, folder)
            kernels += ran
            if found:
                wrong += 1
                print(f"seed {seed}: {str(found)[:300]}", flush=True)
    print(f"{wrong} of {arguments.count} differ; {kernels} kernels ran as functions of one thread")


if __name__ == "__main__":
    main()

"""Random kernels: a small grammar of the language, each kernel right by construction.

`generate(random)` writes the source of one kernel, with device functions, and draws a launch and
arguments. No kernel has a hazard: indices are brought into range with %, every barrier stands where
all threads of a block come, and each thread stores to elements of its own. Integers stay below
`INT_BOUND` and floats within ±`FLOAT_BOUND` where they are assigned, so that nothing overflows
and whole-numbered float32 data stay exact.
"""

from __future__ import annotations

import linecache
import random as random_module
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np

INT_BOUND = 1000  # of a variable
FLOAT_BOUND = 64
INT_LIMIT = 1 << 40  # of an intermediate value
FLOAT_LIMIT = 1 << 22  # float32 holds whole numbers up to 2²⁴
DATA = 9  # of an element of an argument
PARAMETERS = ("a", "b", "x", "y", "m", "k", "alpha", "out", "fout")
INT_TYPES = ("int8", "int16", "int32", "int64")

_files = count()


@dataclass(frozen=True)
class Case:
    """A kernel and a launch: source text of a module, sizes, and arguments by name."""

    source: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    arguments: dict[str, Any]

    def function(self) -> Callable:
        """The kernel, from a module of its own whose text can be read back."""
        file = f"<case {next(_files)}>"
        linecache.cache[file] = (len(self.source), None, self.source.splitlines(True), file)
        module: dict[str, Any] = {"__name__": "case"}
        exec(compile(self.source, file, "exec"), module)
        return module["kernel"]

    def fresh(self) -> list[Any]:
        """The arguments in order, arrays copied."""
        return [
            v.copy() if isinstance(v, np.ndarray) else v
            for v in (self.arguments[name] for name in PARAMETERS)
        ]


def generate(
    random: random_module.Random, *, whole: bool = True, int_type: str | None = None, most: int = 64
) -> Case:
    """Draw a case.

    whole : float data and constants are whole numbers, so that no operation rounds
    int_type : dtype of the integer arguments; drawn where None
    most : threads of a block
    """
    block = _sizes(random, most)
    grid = _sizes(random, 4)
    threads, total = int(np.prod(block)), int(np.prod(grid) * np.prod(block))
    n = max(1, total - random.randint(0, 5))
    writer = Writer(random, whole, threads)
    source = writer.module()
    seed = np.random.default_rng(random.randint(0, 1 << 30))
    dtype = int_type or random.choice(INT_TYPES)

    def floats(size: Any) -> np.ndarray:
        if whole:
            return seed.integers(-DATA, DATA + 1, size).astype(np.float32)
        return seed.uniform(-DATA, DATA, size).astype(np.float32)

    arguments = {
        "a": seed.integers(-DATA, DATA + 1, n).astype(dtype),
        "b": seed.integers(-DATA, DATA + 1, random.randint(1, 40)).astype(dtype),
        "x": floats(n),
        "y": floats(random.randint(1, 40)),
        "m": seed.integers(-DATA, DATA + 1, (random.randint(1, 6), random.randint(1, 9))).astype(
            dtype
        ),
        "k": random.randint(0, 4),
        "alpha": floats(1)[0],
        "out": np.full(n, -1, np.int64),
        "fout": np.full(n, np.nan, np.float32),
    }
    return Case(source, grid, block, arguments)


def _sizes(random: random_module.Random, most: int) -> tuple[int, ...]:
    """One to three sizes whose product is at most `most`."""
    sizes: list[int] = []
    for _ in range(random.randint(1, 3)):
        sizes.append(random.randint(1, most))
        most //= sizes[-1]
    return tuple(sizes)


Expression = tuple[str, float]  # text, and the greatest magnitude that its value can have


class Writer:
    """Writes one module: two device functions and the kernel."""

    def __init__(self, random: random_module.Random, whole: bool, threads: int) -> None:
        self.random, self.whole, self.threads = random, whole, threads
        self.lines: list[str] = []
        self.indent = 1
        self.ints: list[Expression] = []  # variables in reach
        self.floats: list[Expression] = []
        self.names = count()
        self.uniform = True  # all threads of a block are here
        self.in_loop = False
        self.exchanging = False  # shared memory holds values that may be read
        self.may_return = False
        self.in_kernel = False
        self.local = ""

    # Text

    def line(self, text: str) -> None:
        self.lines.append("    " * self.indent + text)

    @contextmanager
    def inside(self, header: str, *, uniform: bool = False, loop: bool | None = None) -> Iterator:
        """The body of a compound statement; variables made in it are forgotten after it."""
        kept = self.uniform, self.in_loop, list(self.ints), list(self.floats), self.local
        self.line(header)
        self.indent += 1
        self.uniform = self.uniform and uniform
        self.in_loop = self.in_loop if loop is None else loop
        yield
        self.indent -= 1
        self.uniform, self.in_loop, self.ints, self.floats, self.local = kept

    def module(self) -> str:
        """The text of the module."""
        self.device_functions()
        self.in_kernel = True
        self.lines.append(f"def kernel({', '.join(PARAMETERS)}):")
        self.prologue()
        for _ in range(self.random.randint(1, 3)):
            self.statements(2, self.random.randint(1, 3))
            self.random.choice([self.exchange, self.exchange, self.atomics])()
        self.may_return, self.uniform = True, False
        self.statements(3, self.random.randint(1, 4))
        with self.inside("if i < n:"):
            self.line(f"out[i] = {self.integer(2)[0]}")
            self.line(f"fout[i] = {self.floating(2)[0]}")
        head = [
            "from numpy import float32, int64",
            "",
            "from gemmlab import cuda",
            "",
            f"THREADS = {self.threads}",
            "",
            "",
        ]
        return "\n".join(head + self.lines) + "\n"

    def device_functions(self) -> None:
        self.ints, self.floats = [("p", INT_LIMIT), ("q", INT_BOUND)], []
        self.lines += ["@cuda.jit(device=True)", "def helper(p, q):"]
        with self.inside(f"if {self.condition(1)}:"):
            self.line(f"return {self.bounded(self.integer(2))}")
        with self.inside(f"for j in range({self.random.randint(1, 4)}):", loop=True):
            self.ints.append(("j", 4))
            with self.inside(f"if {self.condition(1)}:"):
                self.line(f"return {self.bounded(self.integer(2))}")
            self.line(f"q = {self.bounded(self.integer(2))}")
        self.line(f"return {self.bounded(self.integer(1))}")
        self.ints, self.floats = [("s", INT_BOUND)], [("p", FLOAT_LIMIT), ("q", FLOAT_LIMIT)]
        self.lines += ["", "", "@cuda.jit(device=True)", "def mix(p, q, s):"]
        with self.inside(f"if {self.condition(1)}:"):
            self.line(f"p = {self.clamped(self.floating(1))}")
        self.line(f"return {self.clamped(self.floating(2))}")
        self.lines += ["", ""]

    def prologue(self) -> None:
        self.line("integers = cuda.shared.array(THREADS, int64)")
        self.line("floats = cuda.shared.array((THREADS, 2), float32)")
        for name, other in (("threadIdx", "blockDim"), ("blockIdx", "gridDim")):
            short = "t" if name == "threadIdx" else "block"
            self.line(
                f"{short} = cuda.{name}.x + cuda.{other}.x * "
                f"(cuda.{name}.y + cuda.{other}.y * cuda.{name}.z)"
            )
        self.line("i = block * THREADS + t")
        self.line("n = a.size")
        self.ints = [("t", 1024), ("i", 4096), ("k", 8), ("n", 4096), ("block", 64)]
        self.floats = [("alpha", DATA)]
        first = self.integer(1), self.floating(1), self.integer(1), self.floating(1)
        for name, value in zip(("v0", "f0", "v1", "f1"), first, strict=True):
            make = self.bounded if name[0] == "v" else self.clamped
            self.line(f"{name} = {make(value)}")
        self.ints += [("v0", INT_BOUND), ("v1", INT_BOUND)]
        self.floats += [("f0", FLOAT_BOUND), ("f1", FLOAT_BOUND)]

    # Statements

    def statements(self, depth: int, number: int) -> None:
        for _ in range(number):
            kinds = [self.assign_int, self.assign_float, self.augmented, self.swap, self.row]
            kinds += [self.local_array, self.store]
            if depth > 0:
                kinds += 2 * [self.branch, self.uniform_loop, self.thread_loop, self.while_loop]
            if self.in_loop:
                kinds += [self.leave]
            if self.may_return:
                kinds += [self.early_return]
            self.random.choice(kinds)(depth - 1)

    def assign_int(self, depth: int) -> None:
        self.line(f"v{self.random.randint(0, 1)} = {self.bounded(self.integer(3))}")

    def assign_float(self, depth: int) -> None:
        self.line(f"f{self.random.randint(0, 1)} = {self.clamped(self.floating(3))}")

    def augmented(self, depth: int) -> None:
        name = f"v{self.random.randint(0, 1)}"
        self.line(f"{name} {self.random.choice(['+=', '-=', '^=', '|='])} {self.integer(1)[0]}")
        self.line(f"{name} %= {self.random.choice([7, 100, INT_BOUND])}")

    def swap(self, depth: int) -> None:
        name = self.random.choice("vf")
        self.line(f"{name}0, {name}1 = {name}1, {name}0")

    def row(self, depth: int) -> None:
        name = f"row{next(self.names)}"
        self.line(f"{name} = m[{self.index('m.shape[0]')}]")
        v = self.random.choice(["v0", "v1"])
        column = self.index(f"{name}.size")
        self.line(f"{v} = {self.bounded((f'{v} - {name}[{column}]', INT_BOUND + DATA))}")

    def local_array(self, depth: int) -> None:
        if not self.local:
            name = f"own{next(self.names)}"
            self.line(f"{name} = cuda.local.array(4, int64)")
            with self.inside("for j in range(4):"):
                self.ints.append(("j", 4))
                self.line(f"{name}[j] = {self.bounded(self.integer(1))}")
            self.local = name
        self.line(f"{self.local}[{self.index('4')}] = {self.bounded(self.integer(2))}")

    def store(self, depth: int) -> None:
        with self.inside("if i < n:"):
            self.line(f"out[i] = {self.integer(1)[0]}")
            self.line(f"out[i] += {self.integer(1)[0]}")
            self.line(f"fout[i] = {self.floating(1)[0]}")

    def branch(self, depth: int) -> None:
        uniform = self.random.random() < 0.3
        test = self.uniform_condition() if uniform else self.condition(2)
        with self.inside(f"if {test}:", uniform=uniform):
            self.body(depth)
        if self.random.random() < 0.4:
            with self.inside(f"elif {self.condition(1)}:"):
                self.body(depth)
        if self.random.random() < 0.5:
            with self.inside("else:", uniform=uniform):
                self.uniform = False  # after an elif, not all threads come here
                self.body(depth)

    def uniform_loop(self, depth: int) -> None:
        name = f"j{next(self.names)}"
        bounds = self.random.choice(["k", "3", "1, k", "4, 0, -2", "0, 2 * k, 3"])
        leaves = not self.uniform or self.random.random() < 0.5  # break and continue allowed
        with self.inside(f"for {name} in range({bounds}):", uniform=not leaves, loop=leaves):
            self.ints.append((name, 8))
            self.body(depth)
            if self.uniform and not self.exchanging:
                self.exchange()

    def thread_loop(self, depth: int) -> None:
        name = f"j{next(self.names)}"
        start, stop = (f"({self.integer(1)[0]}) % 4" for _ in range(2))
        bounds = self.random.choice([stop, f"{start}, {stop}", f"{stop}, -1, -1", f"{start}, 7, 2"])
        with self.inside(f"for {name} in range({bounds}):", loop=True):
            self.ints.append((name, 8))
            self.body(depth)

    def while_loop(self, depth: int) -> None:
        name = f"w{next(self.names)}"
        self.line(f"{name} = ({self.integer(1)[0]}) % 5")
        more = "" if self.random.random() < 0.5 else f" and ({self.condition(1)})"
        with self.inside(f"while {name} > 0{more}:", loop=True):
            self.line(f"{name} -= 1")
            self.ints.append((name, 5))
            self.body(depth)

    def leave(self, depth: int) -> None:
        with self.inside(f"if {self.condition(1)}:"):
            self.line(self.random.choice(["break", "continue"]))

    def early_return(self, depth: int) -> None:
        with self.inside(f"if {self.condition(1)}:"):
            self.line("return")

    def body(self, depth: int) -> None:
        self.statements(depth, self.random.randint(1, 3))

    def exchange(self) -> None:
        """Each thread shows values to the others of its block; only where all of them come."""
        self.line(f"integers[t] = {self.integer(2)[0]}")
        for column in (0, 1):
            self.line(f"floats[t, {column}] = {self.clamped(self.floating(1))}")
        self.line("cuda.syncthreads()")
        self.exchanging, kept = True, self.uniform
        self.uniform = False
        self.statements(1, self.random.randint(1, 3))
        self.line(f"v1 = {self.bounded(self.shared_integer())}")
        self.line(f"f1 = {self.clamped(self.shared_float())}")
        self.exchanging, self.uniform = False, kept
        self.line("cuda.syncthreads()")

    def atomics(self) -> None:
        """Threads add to elements of others; a vote of the whole block."""
        self.line(f"integers[t] = {self.random.randint(0, 9)}")
        self.line("cuda.syncthreads()")
        with self.inside(f"if {self.condition(1)}:"):
            operation = self.random.choice(["add", "max", "min"])
            where = f"({self.integer(1)[0]}) % THREADS"
            self.line(
                f"cuda.atomic.{operation}(integers, {where}, {self.bounded(self.integer(1))})"
            )
        self.line("cuda.syncthreads()")
        self.line(f"v0 = {self.bounded(self.shared_integer())}")
        self.line(f"v1 = cuda.syncthreads_count(int({self.condition(1)}))")  # Numba: no bool

    # Expressions

    def bounded(self, value: Expression) -> str:
        text, most = value
        return text if most <= INT_BOUND else f"({text}) % {INT_BOUND}"

    def clamped(self, value: Expression) -> str:
        text, most = value
        if most <= FLOAT_BOUND:
            return text
        return f"min(max({text}, float32(-{FLOAT_BOUND})), float32({FLOAT_BOUND}))"

    def index(self, extent: str) -> str:
        """An expression in 0 … extent - 1, or -extent … -1."""
        text = f"({self.integer(1)[0]}) % {extent}"
        return text if self.random.random() < 0.8 else f"-1 - {text}"

    def shared_integer(self) -> Expression:
        return f"integers[({self.integer(1)[0]}) % THREADS]", INT_LIMIT

    def shared_float(self) -> Expression:
        return f"floats[({self.integer(1)[0]}) % THREADS, {self.index('2')}]", FLOAT_BOUND

    def load(self, names: str) -> Expression:
        name = self.random.choice(names)
        extent = f"{name}.size"
        return f"{name}[{self.index(extent)}]", DATA

    def integer(self, depth: int) -> Expression:
        """An expression of int64."""
        random = self.random
        if depth <= 0:
            choices = [(str(random.randint(0, 7)), 7.0), random.choice(self.ints)]
            if self.in_kernel and self.local:
                choices.append((f"{self.local}[{random.randint(0, 3)}]", INT_BOUND))
            return random.choice(choices)
        kinds = ["arithmetic"] * 3 + ["divide", "bits", "unary", "fold", "choose", "leaf"]
        if self.in_kernel:
            kinds += ["load", "load", "call", "round"] + ["shared"] * self.exchanging
        kind = random.choice(kinds)
        if kind == "load":
            return self.load("ab")
        if kind == "shared":
            return self.shared_integer()
        if kind == "round":
            return f"int({self.load('xy')[0]})", DATA
        (left, p), (right, q) = self.integer(depth - 1), self.integer(depth - 1)
        if kind == "arithmetic":
            op = random.choice("+-*")
            if op == "*" and p * q <= INT_LIMIT:
                return f"({left}) * ({right})", p * q
            if p + q <= INT_LIMIT:
                return f"({left}) {'+' if op == '*' else op} ({right})", p + q
            return f"({left}) % 11", 11
        if kind == "divide":
            by = random.choice(["2", "3", "7", "-3"])
            op = random.choice(["//", "%"])
            return f"({left}) {op} ({by})", 7 if op == "%" else p + 1
        if kind == "bits":
            if random.random() < 0.3:
                return f"({left}) >> {random.randint(0, 3)}", p
            return f"(({left}) {random.choice('&|^')} ({right}))", 2 * max(p, q) + 1
        if kind == "unary":
            text, more = random.choice([("-({})", 0), ("~({})", 1), ("abs({})", 0)])
            return text.format(left), p + more
        if kind == "fold":
            return f"{random.choice(['min', 'max'])}({left}, {right})", max(p, q)
        if kind == "choose":
            return f"({left} if {self.condition(depth - 1)} else {right})", max(p, q)
        if kind == "call":
            return f"helper({left}, {self.bounded((right, q))})", INT_BOUND
        return self.integer(0)

    def floating(self, depth: int) -> Expression:
        """An expression of float32."""
        random = self.random
        if depth <= 0:
            number = random.randint(-5, 5) if self.whole else round(random.uniform(-5, 5), 3)
            return random.choice([(f"float32({number})", 5.0), random.choice(self.floats)])
        kinds = ["arithmetic"] * 4 + ["fma", "fma", "fold", "unary", "choose", "convert", "leaf"]
        if self.in_kernel:
            kinds += ["load", "load", "call"] + ["shared"] * self.exchanging
        kind = random.choice(kinds)
        if kind == "load":
            return self.load("xy")
        if kind == "shared":
            return self.shared_float()
        if kind == "convert":
            return f"float32({self.bounded(self.integer(depth - 1))})", INT_BOUND
        (left, p), (right, q) = self.floating(depth - 1), self.floating(depth - 1)
        if kind == "arithmetic":
            op = random.choice("+-*")
            if op == "*" and p * q <= FLOAT_LIMIT:
                return f"({left}) * ({right})", p * q
            if p + q <= FLOAT_LIMIT:
                return f"({left}) {'+' if op == '*' else op} ({right})", p + q
            return self.clamped((left, p)), FLOAT_BOUND
        if kind == "fma":
            left, right = self.clamped((left, p)), self.clamped((right, q))
            third, r = self.floating(0)
            if r + FLOAT_BOUND**2 > FLOAT_LIMIT:
                third, r = self.clamped((third, r)), FLOAT_BOUND
            return f"({left}) * ({right}) {random.choice('+-')} ({third})", FLOAT_BOUND**2 + r
        if kind == "unary":
            return random.choice(["-({})", "abs({})"]).format(left), p
        if kind == "fold":
            return f"{random.choice(['min', 'max'])}({left}, {right})", max(p, q)
        if kind == "choose":
            return f"({left} if {self.condition(depth - 1)} else {right})", max(p, q)
        if kind == "call":
            return f"mix({left}, {right}, {self.bounded(self.integer(1))})", FLOAT_BOUND
        return self.floating(0)

    def uniform_condition(self) -> str:
        """The same for all threads of a block."""
        return self.random.choice(["k > 2", "block % 2 == 0", "n % 3 < k", "m.shape[1] > 4"])

    def condition(self, depth: int) -> str:
        """A condition; it never hangs on a float that may have been rounded."""
        random = self.random
        left, right = self.integer(0)[0], self.integer(max(depth, 0))[0]
        kinds = ["compare", "compare", "chain", "parity"]
        if self.in_kernel:
            kinds += ["guard", "floats"]
        if depth > 0:
            kinds += ["and", "or", "not"]
        kind = random.choice(kinds)
        if kind == "compare":
            return f"({left}) {random.choice(['<', '<=', '>', '>=', '==', '!='])} ({right})"
        if kind == "chain":
            return f"{random.randint(-5, 1)} <= ({left}) < ({right})"
        if kind == "parity":
            return f"({right}) % {random.randint(2, 4)}"
        if kind == "guard":
            return "i < n"
        if kind == "floats":
            return f"{self.load('xy')[0]} {random.choice(['<', '>='])} {self.load('xy')[0]}"
        if kind == "not":
            return f"not ({self.condition(depth - 1)})"
        return f"({self.condition(depth - 1)}) {kind} ({self.condition(depth - 1)})"

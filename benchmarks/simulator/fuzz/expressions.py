"""Random typed expressions, computed by the simulator and by `numba.njit`, compared bit by bit.

    python -m benchmarks.simulator.fuzz.expressions 5000 --seed 1

Left out is what has no defined result in Numba, or is rounded otherwise on a GPU: shifts by the
width or more, integers of floats that do not fit, functions of `math` that are not exact.
"""

from __future__ import annotations

import argparse
import ast
import linecache
import math
import operator
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import numba
import numpy as np
from numba.core.registry import cpu_target
from numba.cpython import numbers

from gemmlab import cuda, simulate
from gemmlab.simt.syntax.nodes import known_truth

DTYPES = ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8")
ROWS = 48  # combinations of arguments for which an expression is computed
BATCH = 40  # expressions compiled together
INTEGERS = {
    name: [0, 1, 2, 3, 7, 31, 100, np.iinfo(name).max, np.iinfo(name).max - 1, np.iinfo(name).min]
    + ([-1, -2, -7, np.iinfo(name).min + 1] if name[0] == "i" else [])
    for name in DTYPES[1:9]
}
FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, -2.5, 3.0, 7.25, 0.1, 1e-30, 3e30, -3e30]
FLOATS += [math.inf, -math.inf, math.nan, 2.0**24 + 2, 16777215.0, 9007199254740991.0]
SMALL = [0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 100.25, -77.75, 3.0, -4.0]  # that fit an int8
LITERALS = ["0", "1", "2", "3", "-1", "7", "255", "65536", "2147483648", "4294967295"]
LITERALS += ["9223372036854775807", "-9223372036854775808", "True", "False", "0.5", "2.0", "-1.5"]
LITERALS += ["9223372036854775808", "18446744073709551615", "0xF0F0F0F0F0F0F0F0"]

BINARY = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
}
SHIFTS = {"<<": operator.lshift, ">>": operator.rshift}
COMPARE = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
}
UNARY = {"-": operator.neg, "+": operator.pos, "~": operator.invert}
CASTS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
TESTS = {"math.isnan": math.isnan, "math.isinf": math.isinf, "math.isfinite": math.isfinite}


@dataclass(frozen=True)
class Expression:
    """The text of an expression, and the type that Numba gives it."""

    text: str
    type: numba.types.Type

    @property
    def integer(self) -> bool:
        """Whether it is an integer, booleans left out."""
        return isinstance(self.type, numba.types.Integer)

    @property
    def float(self) -> bool:
        """Whether it is a floating-point number."""
        return isinstance(self.type, numba.types.Float)


class Generator:
    """Random expressions in the variables b, i1, …, f8 and g4, g8, which hold small numbers."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.typing = cpu_target.typing_context
        self.typing.refresh()

    def typed(self, text: str, function: object, *of: Expression) -> Expression | None:
        """An expression of the type that Numba gives to `function`; None where it gives none."""
        try:
            found = self.typing.resolve_function_type(function, tuple(e.type for e in of), {})
        except numba.TypingError:
            return None
        return found and Expression(text, found.return_type)

    def leaf(self) -> Expression:
        if self.random.random() < 0.25:
            text = self.random.choice(LITERALS)
            value = eval(text)
            kind = numba.uint64 if abs(value) >= 2**63 and value > 0 else numba.typeof(value)
            return Expression(text, kind)
        name = self.random.choice(DTYPES)
        return Expression("b" if name == "?" else name, numba.from_dtype(np.dtype(name)))

    def expression(self, depth: int) -> Expression:
        """An expression of `depth` operators at most, one inside the other."""
        if depth == 0 or self.random.random() < 0.1:
            return self.leaf()
        while True:
            made = self.random.choice(
                [self.binary] * 5
                + [self.unary, self.shift, self.compare, self.cast, self.choose]
                + [self.minimum, self.absolute, self.whole, self.test, self.logic, self.power]
            )(depth - 1)
            if made is not None:
                return made

    def binary(self, depth: int) -> Expression | None:
        symbol, function = self.random.choice(list(BINARY.items()))
        a, b = self.expression(depth), self.expression(depth)
        if a.text in LITERALS and b.text in LITERALS:  # Python computes it, perhaps too large
            return None
        return self.typed(f"({a.text} {symbol} {b.text})", function, a, b)

    def unary(self, depth: int) -> Expression | None:
        symbol, function = self.random.choice(list(UNARY.items()))
        a = self.expression(depth)
        return None if a.text in LITERALS else self.typed(f"({symbol}({a.text}))", function, a)

    def shift(self, depth: int) -> Expression | None:
        symbol, function = self.random.choice(list(SHIFTS.items()))
        a, b = self.expression(depth), self.expression(depth)
        if not (a.integer and b.integer) or b.text in LITERALS:
            return None
        by = self.typed("", operator.and_, b, Expression("63", numba.int64))
        return by and self.typed(f"({a.text} {symbol} ({b.text} & 63))", function, a, by)

    def compare(self, depth: int) -> Expression | None:
        symbol, function = self.random.choice(list(COMPARE.items()))
        a, b = self.expression(depth), self.expression(depth)
        if a.text in LITERALS and b.text in LITERALS:  # Numba compares them when it compiles
            return None
        return self.typed(f"({a.text} {symbol} {b.text})", function, a, b)

    def cast(self, depth: int) -> Expression | None:
        name = self.random.choice((*CASTS, "float32", "float64"))
        kind = getattr(numba, name)
        if name in CASTS and self.random.random() < 0.2:  # of a float that fits
            signed = not name.startswith("u")
            return Expression(f"{name}({'g4' if signed else 'abs(g8)'})", kind)
        a = self.expression(depth)
        return None if name in CASTS and a.float else Expression(f"{name}({a.text})", kind)

    def united(self, a: Expression, b: Expression) -> numba.types.Type | None:
        kind = self.typing.unify_types(a.type, b.type)
        return None if kind in (None, numba.types.undefined) else kind

    def choose(self, depth: int) -> Expression | None:
        a, b, c = (self.expression(depth) for _ in range(3))
        kind = self.united(a, b)
        return kind and Expression(f"({a.text} if {c.text} else {b.text})", kind)

    def minimum(self, depth: int) -> Expression | None:
        name, function = self.random.choice([("min", min), ("max", max)])
        a, b = self.expression(depth), self.expression(depth)
        if a.float or b.float:  # NaNs and signed zeros: a GPU's own rule
            return None
        return self.typed(f"{name}({a.text}, {b.text})", function, a, b)

    def absolute(self, depth: int) -> Expression | None:
        a = self.expression(depth)
        return self.typed(f"abs({a.text})", abs, a)

    def whole(self, depth: int) -> Expression | None:
        name, function = self.random.choice([("int", int), ("round", round)])
        a = self.expression(depth)
        if not a.integer or name == "round":
            name = self.random.choice(("int", "round"))
            return Expression(f"{name}({self.random.choice(('g4', 'g8'))})", numba.int64)
        return self.typed(f"int({a.text})", function, a)

    def test(self, depth: int) -> Expression | None:
        name, function = self.random.choice(list(TESTS.items()))
        a = self.expression(depth)
        return self.typed(f"{name}({a.text})", function, a) if a.float else None

    def logic(self, depth: int) -> Expression | None:
        a, b = self.expression(depth), self.expression(depth)
        if self.random.random() < 0.3:
            return Expression(f"(not {a.text})", numba.boolean)
        kind = self.united(a, b)
        if kind is None or a.text in LITERALS:  # Numba drops a branch that it knows
            return None
        return Expression(f"({a.text} {self.random.choice(('and', 'or'))} {b.text})", kind)

    def power(self, depth: int) -> Expression | None:
        a = self.expression(depth)
        n = self.random.choice((0, 1, 2, 3, 5, -1, -2))
        known = known_truth(ast.parse(a.text, mode="eval").body)
        if known is not None or (n < 0 and a.float):  # Numba raises for 0 ** -1
            return None
        return self.typed(f"({a.text}) ** {n}", operator.pow, a, Expression("", numba.int64))


def arguments(seed: int) -> dict[str, np.ndarray]:
    """Values for each variable, edges of its type among them."""
    rng = random.Random(seed)
    values: dict[str, list] = {"b": [False, True], **INTEGERS}
    values |= {"f4": FLOATS, "f8": FLOATS, "g4": SMALL, "g8": SMALL}
    types = {"b": "?", "g4": "f4", "g8": "f8"}
    return {
        name: np.array([rng.choice(own) for _ in range(ROWS)], types.get(name, name))
        for name, own in values.items()
    }


def compile_both(expressions: list[Expression]) -> tuple[object, object]:
    """One and the same body as a function of `njit` and as a kernel."""
    names = list(arguments(0))
    head = f"({', '.join(f'{n}_' for n in names)}, whole, real):\n"
    body = [f"{name} = {name}_[t]" for name in names]
    for k, e in enumerate(expressions):
        body.append(f"{'real' if e.float else 'whole'}[{k}, t] = {e.text}")
    lines = ["def both" + head, "    for t in range(whole.shape[1]):\n"]
    lines += [f"        {line}\n" for line in body]
    start = len(lines)
    lines += ["def kernel" + head, "    t = cuda.grid(1)\n", "    if t < whole.shape[1]:\n"]
    lines += [f"        {line}\n" for line in body]
    text = "".join(lines)
    file = f"<expressions {start} {hash(text)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    scope = {name: getattr(np, name) for name in (*CASTS, "float32", "float64")}
    scope |= {"math": math, "cuda": cuda}
    exec(compile(text, file, "exec"), scope)
    return numba.njit(scope["both"], error_model="numpy"), scope["kernel"]


@contextmanager
def wrapping() -> Iterator[None]:
    """Let integers wrap: Numba tells LLVM, otherwise, that signed ones never overflow."""
    level, flags = numba.config.OPT, numbers._int_arith_flags
    numba.config.OPT, numbers._int_arith_flags = type(level)(0), lambda kind: []
    try:
        yield
    finally:
        numba.config.OPT, numbers._int_arith_flags = level, flags


def differences(count: int, seed: int) -> list[str]:
    """Each expression among `count` whose bits differ, with the first arguments for which."""
    texts = []
    generator = Generator(seed)
    for first in range(0, count, BATCH):
        expressions = [generator.expression(4) for _ in range(min(BATCH, count - first))]
        texts += different(expressions, seed + first)
    return texts


@wrapping()
def different(expressions: list[Expression], seed: int) -> list[str]:
    """Those of these expressions whose bits differ."""
    compiled, kernel = compile_both(expressions)
    values = arguments(seed)
    texts, found = [], []
    for run in (compiled, partial(simulate, kernel, 2, 32, contract=False)):
        whole = np.zeros((len(expressions), ROWS), np.int64)
        real = np.zeros((len(expressions), ROWS))
        run(*values.values(), whole, real)
        found.append((whole, np.where(np.isnan(real), np.nan, real)))
    for k, e in enumerate(expressions):
        expected, got = (np.ascontiguousarray(pair[e.float][k]) for pair in found)
        wrong = np.flatnonzero(expected.view(np.int64) != got.view(np.int64))
        if len(wrong):
            t = wrong[0]
            used = {n: v[t] for n, v in values.items() if n in e.text}
            text = f"Numba {expected[t]!r}, simulator {got[t]!r} ({e.type})"
            texts.append(f"{e.text}\n  {used}\n  {text}")
    return texts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    wrong = differences(options.count, options.seed)
    print(*wrong, f"{len(wrong)} of {options.count} expressions differ", sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())

"""Random control flow: the simulator against plain Python, run lane by lane.

A test runs a few functions; more of them, from any seed, with

    python -m benchmarks.simulator.fuzz.control_flow 1000 SEED
"""

import importlib.util
import random
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from gemmlab import simulate

LANES, COLUMNS = 40, 6
APART = 5  # every so many programs run lane by lane
NAMES = ("a", "b", "c")
HEADER = """\
from numpy import int64

from gemmlab import cuda

"""
KERNEL = """

def kernel(data, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = thread(i, data)


def lane_by_lane(data, out, lock):
    i = cuda.grid(1)
    if i < out.size:
        while cuda.atomic.cas(lock, 0, 0, 1) != 0:
            pass
        cuda.threadfence()
        cuda.atomic.exch(lock, 0, 0)
        out[i] = thread(i, data)
"""


class Writer:
    """Writes functions of i and `data` at random; the numbers in them stay below 97 · 97.

    a, b, c : numbers; p, q, r : local arrays, which change places, and of which r is one of two
    m : a number that a lane has only where `has` is 1
    inner : a function that sees these variables
    """

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines, self.loops = [], 0

    def function(self, name, parameters, helpers, depth):
        self.lines.append(f"def {name}({', '.join(parameters)}):")
        values = parameters if "data" not in parameters else ("i", "data[i, 0]", "data[i, 1]")
        for k, variable in enumerate(NAMES):
            self.lines.append(f"    {variable} = {values[k % len(values)]} + {k}")
        for array in "pq":
            self.lines.append(f"    {array} = cuda.local.array(4, int64)")
            self.lines.append("    for z in range(4):")
            self.lines.append(f"        {array}[z] = z + {self.random.randrange(9)}")
        self.lines.append("    r = p")
        self.lines.append("    has = 0")
        self.data, self.helpers = "data" in parameters, helpers
        self.write_keep(1, depth, loop=False)
        if self.random.random() < 0.4:
            self.inner()
        self.block(1, depth, loop=False)
        self.end()
        self.lines.append("")
        self.lines.append("")

    def inner(self):
        """A function in the function, which returns in several places."""
        self.lines.append("")
        self.lines.append("    def inner(x, y):")
        self.lines.append("        w = x + y")
        self.lines.append(f"        for z in range(w % {self.random.randint(1, 4)}):")
        self.lines.append(f"            if w > {self.random.randrange(60)}:")
        self.lines.append(f"                return {self.value()}")
        self.lines.append(f"            w += z + {self.random.choice(NAMES)}")
        self.lines.append(f"        if {self.test()}:")
        self.lines.append("            return w % 97")
        self.lines.append("        else:")
        self.lines.append(f"            return (x + {self.value()}) % 97")
        self.lines.append("")
        self.helpers = [*self.helpers, "inner"]

    def end(self):
        """The end of a function, which all lanes leave with a value, at different places."""
        result = "(a + 3 * b + 5 * c + p[0] + 7 * q[3] + r[1]) % 97"
        kind = self.random.randrange(4)
        if kind == 0:
            self.lines.append(f"    if {self.test()}:")
            self.lines.append(f"        return {result}")
            self.lines.append(f"    elif {self.test()}:")
            self.lines.append(f"        return {self.value()}")
            self.lines.append("    else:")
            self.lines.append(f"        return ({result} + 1) % 97")
        elif kind == 1:
            self.lines.append("    while True:")
            self.lines.append("        a += 1")
            self.lines.append(f"        if a % {self.random.randint(2, 5)} == 0:")
            self.lines.append(f"            return {result}")
            self.lines.append(f"        elif a % 7 == {self.random.randrange(7)}:")
            self.lines.append(f"            return {self.value()}")
        else:
            self.lines.append(f"    return {result}")

    def value(self):
        choices = [*NAMES, str(self.random.randrange(-9, 10)), "p[a % 4]", "q[c % 4]", "r[b % 4]"]
        choices += ["(m if has == 1 else 5)"]
        if self.data:
            choices += [f"data[i, {self.random.randrange(COLUMNS)}]", "i"]
        first, second = self.random.choice(choices), self.random.choice(choices)
        kinds = ["{0} {2} {1}", "{0} {2} {1}", "({0} if {3} else {1})", "min({0}, {1})"]
        kinds += [f"{name}({{0}}, {{1}})" for name in self.helpers]
        operator = self.random.choice("+-*")
        text = self.random.choice(kinds).format(first, second, operator, self.test(choices))
        return f"({text}) % 97"

    def test(self, choices=NAMES):
        one, two = self.random.choice(choices), self.random.choice(choices)
        tests = [f"{one} < {two}", f"{one} % 3 == {two} % 3", f"{one} > 20 and {two} % 2 == 0"]
        return self.random.choice([*tests, f"not {one} % 5 or {two} > 50"])

    def block(self, indent, depth, loop):
        for _ in range(self.random.randint(1, 3)):
            self.statement(indent, depth, loop)

    def say(self, indent, text):
        self.lines.append("    " * indent + text)

    def statement(self, indent, depth, loop):
        kinds = ["assign"] * 4 + ["update", "element", "return", "swap", "point", "keep", "kept"]
        kinds += ["if"] * 4 * (depth > 0) + ["while", "for", "for"] * (depth > 0)
        kinds += ["break", "continue"] * 2 * loop
        getattr(self, f"write_{self.random.choice(kinds)}")(indent, depth, loop)

    def write_assign(self, indent, depth, loop):
        self.say(indent, f"{self.random.choice(NAMES)} = {self.value()}")

    def write_update(self, indent, depth, loop):
        self.say(indent, f"{self.random.choice(NAMES)} += {self.value()}")

    def write_element(self, indent, depth, loop):
        place = f"{self.random.choice('pqr')}[{self.random.choice(NAMES)} % 4]"
        self.say(indent, f"{place} = {self.value()}")

    def write_swap(self, indent, depth, loop):
        """Arrays change places: in all lanes, in some, or as often as a lane says."""
        self.loops += 1
        turns = f"for k{self.loops} in range({self.random.choice(NAMES)} % 4):"
        head = self.random.choice(["", f"if {self.test()}:", turns, turns])
        if head:
            self.say(indent, head)
        swap = self.random.choice(
            ["p, q = q, p", "p, q = q, p", "q, r = r, q", "p, q, r = q, r, p"]
        )
        self.say(indent + bool(head), swap)

    def write_point(self, indent, depth, loop):
        one, other = self.random.sample("pq", 2)
        if self.random.random() < 0.5:
            self.say(indent, f"r = {one}")
            self.say(indent, f"if {self.test()}:")
            self.say(indent + 1, f"r = {other}")
        else:
            self.say(indent, f"r = {one} if {self.test()} else {other}")

    def write_keep(self, indent, depth, loop):
        """Only some lanes have m from here on."""
        self.say(indent, f"if {self.test()}:")
        self.say(indent + 1, f"m = {self.value()}")
        self.say(indent + 1, "has = 1")

    def write_kept(self, indent, depth, loop):
        self.say(indent, "if has == 1:")
        self.say(indent + 1, f"{self.random.choice(NAMES)} = (m + 1) % 97")

    def write_return(self, indent, depth, loop):
        self.say(indent, f"if {self.test()}:")
        self.say(indent + 1, f"return {self.value()}")

    def write_break(self, indent, depth, loop):
        self.say(indent, f"if {self.test()}:")
        self.say(indent + 1, "break")

    def write_continue(self, indent, depth, loop):
        self.say(indent, f"if {self.test()}:")
        self.say(indent + 1, "continue")

    def write_if(self, indent, depth, loop):
        self.say(indent, f"if {self.test()}:")
        self.block(indent + 1, depth - 1, loop)
        if self.random.random() < 0.4:
            self.say(indent, f"elif {self.test()}:")
            self.block(indent + 1, depth - 1, loop)
        if self.random.random() < 0.5:
            self.say(indent, "else:")
            self.block(indent + 1, depth - 1, loop)

    def write_while(self, indent, depth, loop):
        self.loops += 1
        left = f"left{self.loops}"
        self.say(indent, f"{left} = {self.random.choice(NAMES)} % 5")
        self.say(indent, f"while {left} > 0 and ({self.test()} or {left} > 1):")
        self.say(indent + 1, f"{left} -= 1")
        self.rest_of_loop(indent, depth, loop)

    def write_for(self, indent, depth, loop):
        self.loops += 1
        bounds = self.random.choice(["4", "{} % 4", "1, {} % 5", "{} % 6, 0, -1", "0, 5, 2"])
        bounds = bounds.format(self.random.choice(NAMES))
        self.say(indent, f"for k{self.loops} in range({bounds}):")
        self.say(indent + 1, f"a = (a + k{self.loops}) % 97")
        self.rest_of_loop(indent, depth, loop)

    def rest_of_loop(self, indent, depth, loop):
        self.block(indent + 1, depth - 1, loop=True)
        if self.random.random() < 0.3:
            self.say(indent, "else:")
            self.block(indent + 1, depth - 1, loop)


def source(seed):
    """A module with `thread(i, data)`, what it calls, and the kernel that calls it."""
    writer = Writer(seed)
    writer.function("first", ("x", "y"), [], depth=1)
    writer.function("second", ("x", "y"), ["first"], depth=1)
    writer.function("thread", ("i", "data"), ["first", "second"], depth=3)
    return HEADER + "\n" + "\n".join(writer.lines).rstrip() + "\n" + KERNEL


def differences(seed, folder):
    """The lanes for which the simulator and Python disagree: (lane, simulated, right)."""
    path = Path(folder) / f"flow_{seed}.py"
    text = source(seed)
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    data = np.random.default_rng(seed).integers(0, 97, (LANES, COLUMNS))
    out = np.full(LANES, -1)
    if seed % APART:
        simulate(module.kernel, 2, 32, data, out)
    else:
        simulate(module.lane_by_lane, 2, 32, data, out, np.zeros(1, np.int64))
    local = SimpleNamespace(array=lambda size, dtype: [0] * size)
    plain = {}
    exec(compile(text.replace(HEADER, ""), str(path), "exec"), plain)
    plain.update(cuda=SimpleNamespace(local=local), int64=int)
    rows = data.tolist()
    right = [plain["thread"](i, Rows(rows)) for i in range(LANES)]
    return [(i, int(a), b) for i, (a, b) in enumerate(zip(out, right, strict=True)) if a != b]


class Rows:
    """A list of lists that is indexed as an array."""

    def __init__(self, rows):
        self.rows = rows

    def __getitem__(self, index):
        return self.rows[index[0]][index[1]]


if __name__ == "__main__":
    count, start = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(start, start + count):
            try:
                found = differences(seed, folder)
            except Exception as error:
                found = [f"{type(error).__name__}: {error}"]
            if found:
                wrong += 1
                print(f"seed {seed}: {found[:3]}", flush=True)
    print(f"{wrong} of {count} differ")
    sys.exit(wrong > 0)

"""Right answers to 06.3 in notebooks that are unusual: each has all of its points.

A row is what the cells after the imports hold; the last cell checks the three functions.
"""

from __future__ import annotations

IMPORTS = 'from gemmlab import exercises\nq = exercises.get("06.3")'
CHECK = "q.check(wavefronts, registers, side)"
F = "def wavefronts(tm, tn, itemsize):\n    return (tm + tn) / (tm * tn) * itemsize / 4\n"
G = "def registers(tm, tn, itemsize):\n    return (tm * tn + tm + tn) * itemsize // 4\n"
H = "def side(fmas, itemsize):\n    return max(1, -int(-fmas * itemsize // 2))\n"
ALL = F + G + H
CEIL = "def side(fmas, itemsize):\n    return max(1, {}(fmas * itemsize / 2))\n"

UNUSUAL: dict[str, tuple[str, ...]] = {
    "three cells": (F, G, H),
    "defined twice": ("def side(fmas, itemsize):\n    return 0\n", ALL),
    "deleted, and made again": (ALL, "del side", H),
    "helpers elsewhere": (
        "def per(t):\n    return t / 4\n",
        F.replace("itemsize / 4", "per(itemsize)"),
        "from math import ceil as up",
        G,
        CEIL.format("up"),
    ),
    "other names of parameters": (F.replace("itemsize", "b"), G.replace("tm", "x"), H),
    "Chinese": (F.replace("):\n", "):\n    # 每个线程计算几个元素？\n    字节 = itemsize\n"), G, H),
    "lambdas": (
        "wavefronts = lambda a, b, s: (a + b) / (a * b) * s / 4",
        "registers = lambda a, b, s: (a * b + a + b) * s // 4\nside = lambda f, s: "
        "max(1, -int(-f * s // 2))",
    ),
    "Windows' line ends": (ALL.replace("\n", "\r\n"),),
    "a margin, which IPython takes away": ("    " + F.replace("\n", "\n    ").rstrip(), G, H),
    "hints of other modules": (
        "from collections.abc import Callable\nfrom numpy.typing import NDArray\nclass Tile: ...",
        F.replace("tm, tn, itemsize)", "tm: Tile, tn: 'int', itemsize: int) -> NDArray | Callable"),
        G,
        H,
    ),
    "a star": ("from math import *", F, G, CEIL.format("ceil")),
    "a star after a name": ("ceil = 3", "from math import *", F, G, CEIL.format("ceil")),
    "a name after a star": (
        "from math import *",
        "ceil = lambda x: -int(-x // 1)",
        F,
        G,
        CEIL.format("ceil"),
    ),
    "imports that are tried": (
        "try:\n    import numpy as np\nexcept ImportError:\n    %pip install numpy",
        F,
        G,
        CEIL.format("int").replace("int(", "int(np.ceil(").replace("))", ")))"),
    ),
    "marked by a call": ("import numba\n" + ALL + "side = numba.njit(side)",),
    "patterns": (
        F,
        G,
        "def side(fmas, itemsize):\n    match fmas * itemsize / 2:\n"
        "        case int(x) | float(x) if x <= 1:\n            return 1\n"
        "        case x:\n            return -int(-x // 1)\n",
    ),
    "nonlocal, a walrus, a generator": (
        F,
        "def registers(tm, tn, itemsize):\n    total = 0\n    def add(n):\n"
        "        nonlocal total\n        total += n\n"
        "    for n in (y for x in (tm * tn, tm, tn) if (y := x)):\n        add(n)\n"
        "    return total * itemsize // 4\n",
        H,
    ),
    "magics in other cells": ("%matplotlib inline\n!ls -la \\\n  /tmp\n%pip install x\nq?", ALL),
    "%%time": ("%%time\n" + ALL,),
    "%%time, and a comment that asks": (
        "%%time\n" + F + G.replace("// 4", "// 4  # rounded down?") + H,
    ),
    "%%time, and a line that begins with a remainder": (
        "%%time\n" + F + G + "def side(fmas, itemsize):\n    top = (fmas * itemsize\n"
        "        % 10**9)\n    return max(1, -int(-top // 2))\n",
    ),
    "what a shell said": ("files = !ls\nn = %timeit -o 1\n" + ALL,),
    "a shell's cell that says side": (ALL, "%%bash\nfor side in 1 2; do echo $(date); done"),
    "a cell of HTML that says side": (ALL, "%%html\n<b>side</b> & so on"),
    "a cell that is no Python": (ALL, "print(("),
}

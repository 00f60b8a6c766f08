"""Lists of problems as a command line has them: sizes, layouts and formats in words."""

from __future__ import annotations

from gemmlab.formats import FORMATS
from gemmlab.problem import Gemm
from gemmlab.product import LAYOUTS

# What `gemmlab record` measures where nothing else is asked for.
SIZES = (
    "256,512,1024,2048,4096,8192,16384,"  # powers of two
    "1000,1023,2049,4095,"  # ragged: no tile divides them all
    "8192x128x8192,64x64x8192,4096x4096x64,4096x1x4096,"  # skinny ones and a GEMV
    "4096x4096x4097,4096x4096x4098,4096x4096x4099,"  # alignments of k: rows of A begin at
    "4096x4096x4100,4096x4096x4104,4096x4096x4112,"  # multiples of 4, 8, 4, 16, 32 and 64 B
    "4096:nt,4096:tn,4096:tt"  # operands that are stored transposed
)


def parse_sizes(text: str) -> list[Gemm]:
    """Problems from a list such as ``"256,8192x128x64,4096:nt:float16"``.

    Each is n or m x n x k, and then a layout and a format of A and B, in any order; "nn" and
    float32 where they are left out. Raises ValueError for anything else.

    >>> for p in parse_sizes("256,8192x128x64,4096:nt:float16,64:tf32"):
    ...     print(p)
    256×256×256 float32
    8192×128×64 float32
    4096×4096×4096 float16 nt
    64×64×64 tf32
    """
    return [_problem(item) for item in text.split(",")]


def _problem(item: str) -> Gemm:
    size, *words = item.strip().lower().split(":")
    sizes = size.split("x")
    if len(sizes) not in (1, 3) or not all(s.isdecimal() and int(s) > 0 for s in sizes):
        raise ValueError(f"size {item!r} is not known; use n or mxnxk, such as 256,8192x128x64")
    said: dict[str, str] = {}
    for word in words:
        what = "layout" if word in LAYOUTS else "dtype" if word in FORMATS else ""
        if not what:
            raise ValueError(
                f"{word!r} of {item!r} is no layout and no format; use one of "
                f"{', '.join((*LAYOUTS, *FORMATS))}"
            )
        if what in said:
            raise ValueError(f"{item!r} has two of {said[what]!r} and {word!r}; use one")
        said[what] = word
    return Gemm(*map(int, sizes * (3 // len(sizes))), **said)

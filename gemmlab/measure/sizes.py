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
    "4096:nt,4096:tn,4096:tt,"  # operands that are stored transposed
    "512:float16:to-float32,1024:float16:to-float32,2048:float16:to-float32,"  # on Tensor Cores
    "4096:float16:to-float32,8192:float16:to-float32,4095:float16:to-float32,"
    "8192x128x8192:float16:to-float32,64x64x8192:float16:to-float32,"
    "4096x4096x4100:float16:to-float32,4096:float16,4096:bfloat16:to-float32,"
    "4096:nt:float16:to-float32,4096:tn:float16:to-float32,4096:tt:float16:to-float32"
)


def parse_sizes(text: str) -> list[Gemm]:
    """Problems from a list such as ``"256,8192x128x64,4096:nt:float16"``.

    Each is n or m x n x k, and then a layout, a format of A and B and one of C after "to-", in any
    order; "nn", float32 and the usual format of C where they are left out. Raises ValueError for
    anything else.

    >>> for p in parse_sizes("256,8192x128x64,4096:nt:float16,64:tf32,64:float16:to-float32"):
    ...     print(p)
    256×256×256 float32
    8192×128×64 float32
    4096×4096×4096 float16 nt
    64×64×64 tf32
    64×64×64 float16 to float32
    """
    return [_problem(item) for item in text.split(",")]


def _problem(item: str) -> Gemm:
    size, *words = item.strip().lower().split(":")
    sizes = size.split("x")
    if len(sizes) not in (1, 3) or not all(s.isdecimal() and int(s) > 0 for s in sizes):
        raise ValueError(f"size {item!r} is not known; use n or mxnxk, such as 256,8192x128x64")
    said: dict[str, str] = {}
    for word in words:
        form = word.removeprefix("to-")
        what = "layout" if word in LAYOUTS else "dtype" if word in FORMATS else ""
        what = what or ("out_dtype" if form in FORMATS else "")
        if not what:
            raise ValueError(
                f"{word!r} of {item!r} is no layout and no format; use one of "
                f"{', '.join((*LAYOUTS, *FORMATS))}, and to- before the format of C"
            )
        if what in said:
            raise ValueError(f"{item!r} has two of {said[what]!r} and {word!r}; use one")
        said[what] = form
    return Gemm(*map(int, sizes * (3 // len(sizes))), **said)

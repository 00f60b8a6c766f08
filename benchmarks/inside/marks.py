"""Marks in a kernel: each warp reads the SM's clock at chosen statements and stores what it reads.

The rungs' sources stay as they are. A copy of the syntax tree of a rung's `build` gets one more
parameter, and at each chosen statement a mark; what is compiled of it is measured and simulated.
All lanes of a warp store the same word, so that a mark needs no predicate: CS2R, STG and an
addition. A warp has a row: the SM and the time of the GPU, then the clock at each mark.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from types import SimpleNamespace
from typing import Any

from gemmlab.kernels.kernel import Kernel, on_device
from gemmlab.simt import cuda
from gemmlab.tiling import WARP

SM, TIME, FIRST = range(3)  # of a row: the SM, `%globaltimer` [ns], the first mark
WORD = 8  # bytes
AT = "_at"  # the variable of a marked kernel that has the address of the next mark


@dataclass(frozen=True)
class Places:
    """The places of a kernel's marks are statements, by the first line of their text.

    tile : behind each of these a warp has the next tile
    multiplied : behind it the products of a tile of C are done; of a loop, behind its end
    stored : behind it a tile of C is stored
    freed : behind it the producer may fill a stage, where a warp is one
    """

    tile: str
    multiplied: str
    stored: str
    freed: str = ""

    @property
    def statements(self) -> tuple[str, ...]:
        return tuple(text for text in (self.tile, self.multiplied, self.stored, self.freed) if text)


def marked(kernel: Kernel, places: Places, each: int) -> Kernel:
    """Return a kernel like another, whose function takes an array for the marks as well.

    each : words of a warp's row
    Raises ValueError for a statement that the kernel has not.
    """
    return replace(kernel, build=_building(kernel.build, kernel.name, places, each))


@cache
def _building(build: Callable, name: str, places: Places, each: int) -> Callable:
    tree = ast.parse(inspect.getsource(build))
    (function,) = (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == name)
    found = [*_behind(function, places)]
    if lacks := set(places.statements) - {text for text, _, _ in found}:
        raise ValueError(f"{name} has no statement {', '.join(map(repr, sorted(lacks)))}")
    mark = ast.parse(f"_mark({AT}, _clock())\n{AT} += {WORD}").body
    for _, body, at in sorted(found, key=lambda place: -place[2]):
        body[at:at] = mark
    function.args.args.append(ast.arg("marks"))
    begin = f"_begun = _clock()\n{AT} = _row(marks)\n_mark({AT}, _begun)\n{AT} += {WORD}"
    function.body[:0] = ast.parse(begin).body
    # Functions end in what they return, or nothing.
    function.body += ast.parse("_end(_row(marks))").body
    made = SimpleNamespace(**vars(sys.modules[build.__module__]) | _words(each))
    code = compile(ast.fix_missing_locations(tree), f"<{name} with marks>", "exec")
    exec(code, vars(made))
    return made.build


def _behind(function: ast.FunctionDef, places: Places) -> Iterator[tuple[str, list[ast.stmt], int]]:
    """Yield each chosen statement, the list that it is in, and the place behind it."""
    for node in ast.walk(function):
        for field in ("body", "orelse"):
            body = getattr(node, field, None)
            if isinstance(body, list):
                for at, statement in enumerate(body):
                    text = ast.unparse(statement).partition("\n")[0]
                    if text in places.statements:
                        yield text, body, at + 1


def _words(each: int) -> dict[str, Any]:
    """Return what marks are made of, by the names that they have in a marked kernel."""
    clock, address, mark, leave = _intrinsics()

    @on_device
    def row(marks):
        block = cuda.blockIdx.y * cuda.gridDim.x + cuda.blockIdx.x
        warp = (block * cuda.blockDim.x + cuda.threadIdx.x) // WARP
        return address(marks) + WORD * (warp * each + FIRST)

    return {"_clock": clock, "_mark": mark, "_row": row, "_end": leave}


@cache
def _intrinsics() -> tuple[Callable, ...]:
    """Make what Numba-CUDA compiles to inline PTX; compilers keep its order."""
    from llvmlite import ir
    from numba.cuda import types
    from numba.cuda.extending import intrinsic

    word, nothing = ir.IntType(64), ir.VoidType()

    def emit(builder: Any, of: ir.FunctionType, text: str, constraint: str, values: list) -> Any:
        code = ir.InlineAsm(of, text, constraint, side_effect=True)
        return builder.call(code, values)

    @intrinsic
    def clock(typing):
        def lower(context, builder, signature, args):
            return emit(builder, ir.FunctionType(word, ()), "mov.u64 $0, %clock64;", "=l", [])

        return types.int64(), lower

    @intrinsic
    def address(typing, marks):
        def lower(context, builder, signature, args):
            array = context.make_array(signature.args[0])(context, builder, args[0])
            return builder.ptrtoint(array.data, word)

        return types.int64(marks), lower

    @intrinsic
    def mark(typing, at, clock):
        def lower(context, builder, signature, args):
            of = ir.FunctionType(nothing, (word, word))
            emit(builder, of, "st.global.u64 [$0], $1;", "l,l,~{memory}", list(args))
            return context.get_dummy_value()

        return types.void(types.int64, types.int64), lower

    @intrinsic
    def leave(typing, at):
        text = (
            "{ .reg .u32 s; .reg .u64 w, t; mov.u32 s, %smid; mov.u64 t, %globaltimer; "
            f"cvt.u64.u32 w, s; st.global.u64 [$0+{WORD * (SM - FIRST)}], w; "
            f"st.global.u64 [$0+{WORD * (TIME - FIRST)}], t; }}"
        )

        def lower(context, builder, signature, args):
            emit(builder, ir.FunctionType(nothing, (word,)), text, "l,~{memory}", list(args))
            return context.get_dummy_value()

        return types.void(types.int64), lower

    return clock, address, mark, leave

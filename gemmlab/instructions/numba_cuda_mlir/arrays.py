"""Arrays of numba-cuda-mlir, from their addresses and back.

A `memref` is an array: an address, sizes and strides, of which types know those that are constant.
"""

import itertools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

from numba_cuda_mlir import mlir_lowering, mlir_optimization
from numba_cuda_mlir._mlir import ir
from numba_cuda_mlir._mlir.dialects import arith, builtin, llvm, math as numbers, memref, nvvm
from numba_cuda_mlir._mlir.extras import types as T  # noqa: N812  # as its own modules call it
from numba_cuda_mlir.lowering import cuda, numpy
from numba_cuda_mlir.lowering_utilities import (
    int_of,
    memref_data_pointer,
    memref_descriptor_type,
)
from numba_cuda_mlir.numba_cuda import types

SPACES = {"shared": 3, "global": 1, "any": 0}  # LLVM's numbers of address spaces
DYNAMIC = -(1 << 31)  # in the list of a GEP's constant indices: one that is a value
EXTERNAL, INTERNAL = "external", "internal"
KERNEL = "nvvm.kernel"
_numbers = itertools.count()


class Array:
    """An array's pointer, sizes and strides; constants where they are known."""

    def __init__(self, value: Any) -> None:
        kind = ir.MemRefType(value.type)
        self.pointer = memref_data_pointer(value)
        if kind.memory_space is not None:
            plain = ir.MemRefType.get(kind.shape, kind.element_type, kind.layout)
            value = memref.memory_space_cast(dest=plain, source=value)
        form = memref_descriptor_type(kind.rank)
        self._held = builtin.unrealized_conversion_cast([form], [value])

    def size(self, axis: int) -> Any:
        """Return the elements along an axis, of 64 bits."""
        return llvm.extractvalue(T.i64(), self._held, [3, axis])

    def step(self, axis: int) -> Any:
        """Return the elements from one index of an axis to the next, of 64 bits."""
        return llvm.extractvalue(T.i64(), self._held, [4, axis])


def constant(width: int, value: int) -> Any:
    """Return a constant of so many bits."""
    return arith.constant(ir.IntegerType.get_signless(width), value)


def at(start: Any, offset: Any, element: Any) -> Any:
    """Return the address of an element, `offset` elements from `start`."""
    return llvm.getelementptr(start.type, start, [offset], [DYNAMIC], element, None)


def strided(array: Any) -> Any:
    """Return the same array with a type that knows neither its offset nor its strides."""
    kind = ir.MemRefType(array.type)
    unknown = ir.ShapedType.get_dynamic_stride_or_offset()
    layout = ir.StridedLayoutAttr.get(unknown, [unknown] * kind.rank)
    form = ir.MemRefType.get(kind.shape, kind.element_type, layout, kind.memory_space)
    return memref.cast(form, array)


def in_shared(start: Any, shape: Sequence[int], element: Any) -> Any:
    """Return the row-major array of constant shape at an address of shared memory."""
    rank = len(shape)
    many = f"array<{rank} x i64>"
    held = llvm.mlir_undef(ir.Type.parse(f"!llvm.struct<(ptr<3>, ptr<3>, i64, {many}, {many})>"))
    steps = [math.prod(shape[i + 1 :]) for i in range(rank)]
    parts = [([0], start), ([1], start), ([2], constant(64, 0))]
    parts += [([3, i], constant(64, size)) for i, size in enumerate(shape)]
    parts += [([4, i], constant(64, step)) for i, step in enumerate(steps)]
    for place, value in parts:
        held = llvm.insertvalue(held, value, place)
    space = ir.Attribute.parse("#gpu.address_space<workgroup>")
    kind = ir.MemRefType.get(shape, element, memory_space=space)
    return builtin.unrealized_conversion_cast([kind], [held])


def shared_memory(lower: Any, name: str, kind: str, linkage: str, alignment: int) -> Any:
    """Return the address of a variable in shared memory, of which a module says once."""
    body = lower.mlir_gpu_module.bodyRegion.blocks[0]
    named = [op.attributes["sym_name"] for op in body if "sym_name" in op.attributes]
    if name not in [ir.StringAttr(one).value for one in named]:
        with ir.InsertionPoint.at_block_begin(body):
            llvm.mlir_global(
                ir.Type.parse(kind), name, ir.Attribute.parse(f"#llvm.linkage<{linkage}>"),
                addr_space=SPACES["shared"], alignment=alignment,
            )  # fmt: skip
    return llvm.mlir_addressof(llvm.PointerType.get(SPACES["shared"]), name)


def shared_array(lower: Any, target: Any, shape: Sequence[int], dtype: Any, alignment: int) -> None:
    """Write `cuda.shared.array` of a constant shape, which a device function may have, too."""
    element = lower.get_storage_type(cuda._resolve_numba_dtype(lower, dtype))
    name, kind = f"gemmlab_shared_{next(_numbers)}", f"!llvm.array<{math.prod(shape)} x {element}>"
    start = shared_memory(lower, name, kind, INTERNAL, alignment)
    lower.store_var(target, in_shared(start, shape, element))


def tidy(module: Any) -> None:
    """Move local variables of constant size to where their functions begin, and take functions
    away that no kernel calls any more.
    """
    functions: dict[str, Any] = {}

    def visit(found: Any) -> Any:
        if found.name == "llvm.func" and found.regions[0].blocks:
            functions[ir.StringAttr(found.attributes["sym_name"]).value] = found
            begin_with_variables(found)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    kernels = [name for name, one in functions.items() if KERNEL in one.attributes]
    needed = reached(functions, kernels)
    for name, one in functions.items():
        if kernels and name not in needed:
            one.erase()


def begin_with_variables(function: Any) -> None:
    """Move local variables of constant size to where a function begins."""
    entry = function.regions[0].blocks[0]
    inside = [op for block in list(function.regions[0].blocks)[1:] for op in block]
    for variable in [op for op in inside if op.operation.name == "llvm.alloca"]:
        count = variable.operands[0].owner
        if count.name == "llvm.mlir.constant":
            first = next(iter(entry.operations))
            count.clone(ip=ir.InsertionPoint(first))
            own = next(iter(entry.operations))
            variable.operation.move_after(own.operation)
            variable.operation.operands[0] = own.results[0]


def reached(functions: Mapping[str, Any], names: Sequence[str]) -> set[str]:
    """Return the names of functions that some of them call or name, and what these do."""
    found, left = set(names), list(names)
    while left:
        text = str(functions[left.pop()])
        more = {name for name in re.findall(r"@([\w$.]+)", text) if name in functions} - found
        found |= more
        left += more
    return found


def without_sign(own: Callable) -> Callable:
    """Return `own`, which makes an index of a value, for short numbers without a sign, too."""

    def index(array: Any, value: Any, axis: int, kind: Any = None) -> Any:
        narrow = isinstance(value, ir.Value) and isinstance(value.type, ir.IntegerType)
        if narrow and isinstance(kind, types.Integer) and not kind.signed and value.type.width < 64:
            value = arith.extui(T.i64(), value)
        return own(array, value, axis, kind)

    return index


def in_halves(own: Callable) -> Callable:
    """Return `own`, which writes a shuffle of 32 bits among lanes, for 64 bits, too."""

    def shuffle(builder: Any, target: Any, args: Any, kwargs: Any, kind: Any) -> None:
        value = builder.load_var(args[1])
        if getattr(value.type, "width", 0) != 64:
            own(builder, target, args, kwargs, kind)
            return
        mask, offset = (int_of(builder.load_var(args[i]), T.i32()) for i in (0, 2))
        clamp = constant(32, 0 if kind == nvvm.ShflKind.up else 31)
        bits = arith.bitcast(T.i64(), value) if value.type == T.f64() else value
        upper = arith.shrui(bits, constant(64, 32))
        parts = arith.trunci(T.i32(), bits), arith.trunci(T.i32(), upper)
        low, high = (
            arith.extui(T.i64(), nvvm.shfl_sync(mask, part, offset, clamp, kind)) for part in parts
        )
        bits = arith.ori(arith.shli(high, constant(64, 32)), low)
        found = bits if value.type == T.i64() else arith.bitcast(value.type, bits)
        builder.store_var(target, found)

    return shuffle


class Literals(mlir_lowering.UniTupleIterObject):
    """Numbers of a tuple in turn; those that are written down have a sign."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._written = not kwargs

    def next(self) -> Any:
        found = super().next()
        if self._written and found.value.type == T.i32():
            found.value = arith.extsi(T.i64(), found.value)
        return found


def mends() -> tuple[tuple[ModuleType, str, Callable], ...]:
    """Return what to put in the place of functions that release 0.6.0 gets wrong: module, name, it.

    A row of an array of known strides, `a[0]` of `cuda.local.array((2, 4), …)`, gets a type that
    MLIR refuses: here the array forgets its strides first. A shared array of a device function is
    left behind when that is copied into the kernel: here it is a global of the kind that is copied.
    Variables of a device function that is called in a loop stay in local memory, because they are
    made where it is inlined: here all are made where the kernel begins, so that LLVM finds them.
    And the functions that are inlined stay in the PTX, forty times as long as the kernel: here they
    go.
    An index of uint8 is read as int8, so that 255 is -1: here it is extended without a sign.
    (Indices of atomics are not: what extends them does not know their types.)
    A shuffle among lanes keeps 32 bits of 64: here it is two. What a loop takes from `(-1, 0, 1)`
    has no sign, so that -1 is 2**32 - 1: here it has. `round` takes halves away from 0: here to
    the even neighbour, as Python does.
    """
    own, patterns = numpy._rank_reducing_subview, mlir_optimization.run_pre_codegen_patterns

    def tidied(module: Any) -> None:
        tidy(module)
        patterns(module)

    return (
        (mlir_optimization, "run_pre_codegen_patterns", tidied),
        (numpy, "_normalize_negative_index", without_sign(numpy._normalize_negative_index)),
        (numpy, "_rank_reducing_subview", lambda array, *rest: own(strided(array), *rest)),
        (cuda, "cuda_static_shared_memory", shared_array),
        (cuda, "_shfl_sync_lowering", in_halves(cuda._shfl_sync_lowering)),
        (mlir_lowering, "UniTupleIterObject", Literals),
        (numbers, "round", numbers.roundeven),
    )

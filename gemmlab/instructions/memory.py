"""Loads and stores of neighbouring elements, asynchronous copies, and views of shared memory.

Source: PTX ISA 9.0, sections "ld", "st", "cp.async", "cp.async.commit_group" and
"cp.async.wait_group".
"""

from typing import Any

from gemmlab.instructions.instruction import (
    Instruction,
    KernelFunction,
    Literal,
    Memory,
    Registers,
    Valid,
    named_in,
)


def _load(count: int) -> Instruction:
    return Instruction(
        name=f"load_v{count}",
        ptx=f"ld.v{count} {{{{{{values}}}}}}, [{{array}}]",
        operands=(Memory("array", "any", "read", elements=count),),
        result=Registers("values", "element", count),
        requires="sm_50",
        kind="load",
    )


def _store(count: int) -> Instruction:
    return Instruction(
        name=f"store_v{count}",
        ptx=f"st.v{count} [{{array}}], {{{{{{values}}}}}}",
        operands=(
            Memory("array", "any", "write", elements=count),
            Registers("values", "element", count),
        ),
        result=None,
        requires="sm_50",
        kind="store",
    )


def _copy(size: int) -> Instruction:
    cache = "cg" if size == 16 else "ca"  # L2 alone, or L1 too; .cg exists for 16 bytes
    return Instruction(
        name=f"cp_async_{size}",
        ptx=f"cp.async.{cache}.shared.global [{{to}}], [{{source}}], {size}{{valid}}",
        operands=(
            Memory("to", "shared", "write", bytes=size),
            Memory("source", "global", "read", bytes=size),
            Valid("valid"),
        ),
        result=None,
        requires="sm_80",
        kind="async_copy",
    )


load_v2, load_v4, load_v8 = _load(2), _load(4), _load(8)
store_v2, store_v4, store_v8 = _store(2), _store(4), _store(8)
cp_async_4, cp_async_8, cp_async_16 = _copy(4), _copy(8), _copy(16)
cp_async_commit = Instruction(
    "cp_async_commit", "cp.async.commit_group", (), None, "sm_80", "async_commit"
)
cp_async_wait = Instruction(
    "cp_async_wait", "cp.async.wait_group {groups}", (Literal("groups", 63),), None, "sm_80",
    "async_wait",
)  # fmt: skip


BASE_ALIGNMENT = 1024  # bytes: what the strictest user of shared memory, wgmma, asks for


class SharedView(KernelFunction):
    """`shared_view(shape, dtype, offset)`: an array over the block's dynamic shared memory.

    shape, dtype : constants, as `cuda.shared.array` takes them
    offset : where it begins [B], a multiple of the size of an element; the memory itself begins at
        a multiple of 1024

    Its strides are constants, so that an index with constant parts costs nothing. Views may
    overlap; how much memory there is, the launch says.
    """

    name = __name__ = "shared_view"

    def __call__(self, *args: object) -> Any:
        raise RuntimeError("shared_view has a meaning only inside a kernel")

    def __repr__(self) -> str:
        return "<shared_view>"


shared_view = SharedView()


def takes_constant(function: object) -> bool:
    """Say whether the first argument must be known when the kernel is compiled."""
    if isinstance(function, Instruction):
        return any(isinstance(operand, Literal) for operand in function.operands[:1])
    return function is shared_view


__all__ = named_in(globals())

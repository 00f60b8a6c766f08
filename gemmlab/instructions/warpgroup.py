"""Matrix instructions of a warpgroup, 128 threads: `wgmma`, D = A·B + D with D in registers.

B is read from shared memory, and A from there or from registers, asynchronously: *wgmma_fence*
before the first one, and after other instructions have written registers that it takes;
*wgmma_commit* makes a group of those since the last commit; *wgmma_wait* waits until at most n
groups are under way, and names the accumulators that are used next. Hopper alone has them.
Source: PTX ISA 9.0, section "Asynchronous warpgroup level matrix instructions".
"""

from gemmlab.formats import EIGHT_BITS, FORMATS
from gemmlab.instructions.instruction import (
    Accumulator,
    Condition,
    Instruction,
    Literal,
    Matrix,
    Registers,
)

WARPGROUP = 128  # threads
ROWS, K, K8 = 64, 16, 32  # of A, of an instruction; along k, of 16 and of 8 bits
COLUMNS = (8, 16, 32, 64, 128, 192, 256)  # of B; the instruction takes every multiple of 8


def _hopper(name: str, ptx: str, operands: tuple, kind: str) -> Instruction:
    lanes = WARPGROUP
    return Instruction(name, ptx, operands, None, "sm_90", kind, last="sm_90", lanes=lanes)


def _wgmma(n: int, layout: str, form: str) -> Instruction:
    across = layout[0] == "t", layout[1] == "n"  # rows of A's and of B's array lie across k
    order = f"_{'col' if across[0] else 'row'}_{'row' if across[1] else 'col'}" * any(across)
    a, b = (
        Matrix(name, rows, "mn" if other else "k", form)
        for name, rows, other in zip("ab", (ROWS, n), across, strict=True)
    )
    return _hopper(
        f"wgmma_m64n{n}k16{order}_f32_{form}",
        "{{ .reg .pred keep; setp.ne.b32 keep, {accumulate}, 0; "
        f"wgmma.mma_async.sync.aligned.m64n{n}k16.f32.{form}.{form} "
        f"{{{{{{acc}}}}}}, {{a}}, {{b}}, keep, 1, 1, {across[0]:d}, {across[1]:d}; }}}}",
        (Accumulator("acc", n // 2), a, b, Condition("accumulate")),
        "wgmma",
    )


def _wgmma_registers(n: int, across: bool) -> Instruction:
    """Return `wgmma` with A in registers: of each warp's 16 rows, what `mma_m16n8k16` takes."""
    return _hopper(
        f"wgmma_m64n{n}k16_registers{'_row' * across}_f32_f16",
        "{{ .reg .pred keep; setp.ne.b32 keep, {accumulate}, 0; "
        f"wgmma.mma_async.sync.aligned.m64n{n}k16.f32.f16.f16 "
        f"{{{{{{acc}}}}}}, {{{{{{a}}}}}}, {{b}}, keep, 1, 1, {across:d}; }}}}",
        (
            Accumulator("acc", n // 2), Registers("a", "float16x2", 4),
            Matrix("b", n, "mn" if across else "k"), Condition("accumulate"),
        ),
        "wgmma",
    )  # fmt: skip


def _wgmma_8(n: int, form: str) -> Instruction:
    """Return `wgmma` of FP8: 32 along k, and rows of A's and of B's array lie along k."""
    return _hopper(
        f"wgmma_m64n{n}k32_f32_{form}",
        "{{ .reg .pred keep; setp.ne.b32 keep, {accumulate}, 0; "
        f"wgmma.mma_async.sync.aligned.m64n{n}k32.f32.{form}.{form} "
        "{{{acc}}}, {a}, {b}, keep, 1, 1; }}",
        (
            Accumulator("acc", n // 2), Matrix("a", ROWS, format=form), Matrix("b", n, format=form),
            Condition("accumulate"),
        ),
        "wgmma",
    )  # fmt: skip


def _wait(n: int) -> Instruction:
    return _hopper(
        f"wgmma_wait_n{n}",
        "wgmma.wait_group.sync.aligned {groups}",
        (Literal("groups", 7), Accumulator("acc", n // 2)),
        "async_wait",
    )


def _registers(way: str) -> Instruction:
    return _hopper(
        f"setmaxnreg_{way}",
        f"setmaxnreg.{way}.sync.aligned.u32 {{count}}",
        (Literal("count", 256),),
        "setmaxnreg",
    )


# By the columns of D, and by how A and B are stored, see `Gemm.layout`; of FP16, and of BF16. Where
# A is in registers, by the columns and how B is stored. Of FP8 by the columns and the format.
WGMMA = {(n, a + b): _wgmma(n, a + b, "f16") for n in COLUMNS for a in "nt" for b in "nt"}
WGMMA_BF16 = {(n, a + b): _wgmma(n, a + b, "bf16") for n in COLUMNS for a in "nt" for b in "nt"}
WGMMA_REGISTERS = {(n, b): _wgmma_registers(n, b == "n") for n in COLUMNS for b in "nt"}
WGMMA_8 = {(n, form): _wgmma_8(n, FORMATS[form].ptx) for n in COLUMNS for form in EIGHT_BITS}
WGMMA_WAIT = {n: _wait(n) for n in COLUMNS}
_FAMILIES = WGMMA, WGMMA_8, WGMMA_BF16, WGMMA_REGISTERS, WGMMA_WAIT
globals().update({i.name: i for family in _FAMILIES for i in family.values()})
wgmma_fence = _hopper("wgmma_fence", "wgmma.fence.sync.aligned", (), "fence")
wgmma_commit = _hopper("wgmma_commit", "wgmma.commit_group.sync.aligned", (), "async_commit")
setmaxnreg_inc, setmaxnreg_dec = _registers("inc"), _registers("dec")

__all__ = ["WGMMA", "WGMMA_8", "WGMMA_BF16", "WGMMA_REGISTERS", "WGMMA_WAIT"]
__all__ += ["setmaxnreg_dec", "setmaxnreg_inc", "wgmma_commit", "wgmma_fence"]
__all__ += [i.name for family in _FAMILIES for i in family.values()]

"""Products beside other arithmetic: what both read from the registers, and when they issue.

An HMMA reads seven or ten registers of each lane. Other arithmetic reads one to three, by the same
way: so it takes time from the products, although it has a pipe of its own and there are slots left.
"""

from __future__ import annotations

from typing import NamedTuple

from benchmarks.microbenchmarks.loop import SOME_WARPS, Loop, lines, registers, started
from benchmarks.microbenchmarks.tensor_cores import BITS, N, product

CHAINS = 4  # of products, and a fourth of those of other instructions


class Other(NamedTuple):
    """Arithmetic among the products: PTX on numbers of registers, opcode, kind of register."""

    text: str
    opcode: str
    kind: str


OTHERS = {
    "fmul": Other("mul.f32 f{0}, f{0}, 0f3F800001;", "FMUL", "f"),
    "fadd": Other("add.f32 f{0}, f{0}, f{1};", "FADD", "f"),
    "ffma": Other("fma.rn.f32 f{0}, f{0}, f{1}, f{2};", "FFMA", "f"),
    "imad": Other("mad.lo.u32 r{0}, r{0}, r{1}, r{2};", "IMAD", "r"),
    "lop3": Other("lop3.b32 r{0}, r{0}, r{1}, r{2}, 0x6a;", "LOP3", "r"),
}
OWN, FIRST, SECOND = 32, 64, 72  # the first register of results, and of the other operands


def _beside(name: str, other: str, count: int) -> Loop:
    text, opcode, kind = OTHERS[other]
    body = []
    for k in range(N):
        body.append(product(name, k % CHAINS))
        for c in range(k * count, (k + 1) * count):
            own, first, second = OWN + c % 16, FIRST + 3 * c % 8, SECOND + 5 * c % 8
            body.append(text.format(own, first, second))
    sums, results = registers("f", 4 * CHAINS), registers(kind, 16, OWN)
    return Loop(
        f"{name}_beside_{count}_{other}",
        f"cycles of a warp for each HMMA with {count} {opcode} after it, all independent",
        lines(body),
        N,
        {"HMMA": N, opcode: N * count},
        started(sums) + started(results) + started(registers(kind, 16, FIRST)) + BITS,
        (*sums, *results),
        SOME_WARPS,
        requires=(8, 0),
    )


LOOPS = (
    *(_beside("hmma_16816_f16", other, n) for other in OTHERS for n in (1, 2, 4)),
    *(_beside("hmma_16816_f16", other, 8) for other in ("fmul", "ffma")),
    *(_beside("hmma_1688_f16", other, n) for other in ("fmul", "fadd") for n in (1, 2, 4)),
)

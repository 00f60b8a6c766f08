"""Tensor Cores: `mma.sync` from registers, and the clock while all of them compute."""

from __future__ import annotations

from benchmarks.microbenchmarks.loop import Loop, lines, registers, started

N = 32  # products of a turn
CHAINS = (1, 2, 4, 8)
_TEXT = (
    "mma.sync.aligned.{shape}.row.col.f32.{type}.{type}.f32 {{f{0}, f{1}, f{2}, f{3}}}, "
    "{{{a}}}, {{{b}}}, {{f{0}, f{1}, f{2}, f{3}}};"
)
# name -> shape, type, registers of A and of B
PRODUCTS = {
    "hmma_16816_f16": ("m16n8k16", "f16", 4, 2),
    "hmma_16816_bf16": ("m16n8k16", "bf16", 4, 2),
    "hmma_1688_f16": ("m16n8k8", "f16", 2, 1),
    "hmma_1688_tf32": ("m16n8k8", "tf32", 4, 2),
}
# Two halves or bfloat16 of moderate size and random bits, another pair in each lane and register.
BITS = lines(
    f"mad.lo.u32 r{i}, tid, {747796405 + 2 * i}, {2891336453 + i}; shr.u32 x, r{i}, 13; "
    f"xor.b32 r{i}, r{i}, x; mul.lo.u32 r{i}, r{i}, 277803737; "
    f"lop3.b32 r{i}, r{i}, 0x87ff87ff, 0x38003800, 0xea;"
    for i in range(6)
)


def product(name: str, chain: int) -> str:
    """PTX of a product that adds to the sums of a chain, a key of `PRODUCTS`."""
    shape, type_, of_a, of_b = PRODUCTS[name]
    a, b = registers("r", of_a), registers("r", of_b, 4)
    sums = range(4 * chain, 4 * chain + 4)
    return _TEXT.format(*sums, shape=shape, type=type_, a=", ".join(a), b=", ".join(b))


def _loop(name: str, title: str, fact: str, chains: int, **options: object) -> Loop:
    sums = registers("f", 4 * chains)
    return Loop(
        title,
        fact,
        lines(product(name, k % chains) for k in range(N)),
        N,
        {"HMMA": N},
        started(sums) + BITS,
        sums,
        requires=(8, 0),
        **options,
    )


LOOPS = (
    *(
        _loop(
            name,
            f"{name}_latency",
            "cycles from an HMMA to one that adds to its result",
            1,
            warps=(1,),
        )
        for name in PRODUCTS
    ),
    *(
        _loop(
            name,
            f"{name}_rate_{chains}_chains",
            f"cycles of a warp for each HMMA of {chains} independent chains",
            chains,
            warps=(4, 8, 16, 32),
        )
        for name in PRODUCTS
        for chains in CHAINS
    ),
    _loop(
        "hmma_16816_f16",
        "hmma_all_sms",
        "cycles of a warp for each HMMA while all SMs compute for 0.2 s, and their clock",
        8,
        warps=(16,),
        of_sms=1.0,
        turns=500_000,
        passes=1,
    ),
)

"""Hopper's asynchronous instructions: what is right stays silent, each wrong twin is found.

The kernels are made of one source: a twin leaves out or changes the line that its mark names, and
the hazard has to be found where the text of the line at fault stands.
"""

import re

import numpy as np
import pytest

from gemmlab import cuda, instructions, simulate
from gemmlab.formats import to_memory
from gemmlab.here.compilers import assemble
from gemmlab.instructions import Instruction, tensor_map
from gemmlab.numerics import fused_dot_add
from gemmlab.simt import UnsupportedError
from gemmlab.simt.builtins.warpgroups import places
from tests.support.asynchronous import STAGES, STORED, N, made
from tests.support.ptx import compiled

ROWS = 64

# One block: a warpgroup that copies, one that multiplies; C is 64×16, along k in steps of 64.
PIPELINE = """
def kernel(A, B, k, C):
    As = shared_view((STAGES, 64, 64), float16, 0)
    Bs = shared_view((STAGES, N, 64), float16, STAGES * 64 * 128)
    full = shared_view((STAGES,), uint64, STAGES * (64 + N) * 128)
    empty = shared_view((STAGES,), uint64, STAGES * (64 + N) * 128 + 64)
    thread = cuda.threadIdx.x
    if thread == 0:
        for s in range(STAGES):
            mbarrier_init(full, s, 1)
            mbarrier_init(empty, s, 1)
        fence_mbarrier_init()
    cuda.syncthreads()
    steps = k // 64
    if thread >= 128:
        setmaxnreg_dec(24)
        if thread == 128:
            fence_tensor_map(A)
            fence_tensor_map(B)
            for i in range(steps):
                s = i % STAGES
                mbarrier_wait(empty, s, (i // STAGES & 1) ^ 1)
                mbarrier_arrive_expect(full, s, (64 + N) * 128)
                tma_load(As, s, 0, 0, A, 0, 64 * i, full, s)
                tma_load(Bs, s, 0, 0, B, 0, 64 * i, full, s)
    else:
        setmaxnreg_inc(256)
        acc = cuda.local.array(HALF, float32)
        for r in range(HALF):
            acc[r] = float32(0)
        for i in range(steps):
            s = i % STAGES
            mbarrier_wait(full, s, i // STAGES & 1)
            wgmma_fence()
            wgmma(acc, As, s, 0, 0, Bs, s, 0, 0, i > 0)
            wgmma(acc, As, s, 0, 16, Bs, s, 0, 16, True)
            wgmma(acc, As, s, 0, 32, Bs, s, 0, 32, True)
            wgmma(acc, As, s, 0, 48, Bs, s, 0, 48, True)
            wgmma_commit()
            wgmma_wait(0, acc)
            if thread == 0:
                mbarrier_arrive(empty, s)
        for r in range(HALF):
            row = thread // 32 * 16 + thread % 32 // 4 + r // 2 % 2 * 8
            C[row, r // 4 * 8 + thread % 4 * 2 + r % 2] = acc[r]
"""

# The same with tiles that `cp.async` fills.
COPIED = STORED.replace(
    STORED[STORED.index("    for i in range(thread, 64 * 64") : STORED.index("    fence_proxy")],
    """\
    for i in range(thread, 64 * 8, 128):
        cp_async_16(As, i // 8, (i % 8 ^ i // 8 % 8) * 8, A, i // 8, i % 8 * 8)
    for i in range(thread, N * 8, 128):
        cp_async_16(Bs, i // 8, (i % 8 ^ i // 8 % 8) * 8, B, i // 8, i % 8 * 8)
    cp_async_commit()
    cp_async_wait(0)
""",
)

# A from registers: of each warp's 16 rows, pairs of rows g and g + 8, and eight columns further on.
FIRST, LAST = STORED.index("    wgmma_fence"), STORED.index("    wgmma_commit")
IN_REGISTERS = STORED.replace(
    STORED[FIRST:LAST],
    """\
    r, t = thread // 32 * 16 + thread % 32 // 4, thread % 4 * 2
    for k in range(0, 64, 16):
        a = (
            pack_f16x2(float32(A[r, k + t]), float32(A[r, k + t + 1])),
            pack_f16x2(float32(A[r + 8, k + t]), float32(A[r + 8, k + t + 1])),
            pack_f16x2(float32(A[r, k + t + 8]), float32(A[r, k + t + 9])),
            pack_f16x2(float32(A[r + 8, k + t + 8]), float32(A[r + 8, k + t + 9])),
        )
        wgmma_fence()
        wgmma_m64n16k16_registers_f32_f16(acc, a, Bs, 0, k, k > 0)
""",
)


def operands(k, seed=0):
    rng = np.random.default_rng(seed)
    a, b = (rng.standard_normal((rows, k)).astype(np.float16) for rows in (ROWS, N))
    return a, b, np.full((ROWS, N), np.nan, np.float32)


def launched(source, k, name="right", on_hazard="collect"):
    a, b, c = operands(k)
    maps = [tensor_map(x, len(x)) for x in (a, b)] if "tma_load" in source else [a, b]
    threads = 256 if "tma_load" in source else 128
    shared = STAGES * (ROWS + N) * 128 + 128
    kernel = made(source, name)
    report = simulate(kernel, 1, threads, *maps, k, c, shared_bytes=shared, on_hazard=on_hazard)
    return report, c, fused_dot_add(a[:, None], b[None], np.zeros((ROWS, N), np.float32))


@pytest.mark.parametrize("k", [64, 128, 320])
def test_a_pipeline_computes_to_the_bit(k):
    report, c, expected = launched(PIPELINE, k)
    assert report.hazards == []
    assert np.array_equal(c, expected)
    steps = k // 64
    assert report.instructions["inst_wgmma"] == 4 * 4 * steps  # four warps
    assert report.instructions["inst_tensor_copy"] == 2 * steps
    assert report.counters["tensor_copy_bytes"] == (ROWS + N) * 128 * steps


def test_accumulators_that_are_set_to_zero_first():
    report, c, expected = launched(PIPELINE.replace("0, i > 0)", "0, True)"), 128, "from zero")
    assert report.hazards == []
    assert np.array_equal(c, expected)


@pytest.mark.parametrize("source", [STORED, COPIED], ids=["stores", "cp.async"])
def test_tiles_filled_by_ordinary_stores(source):
    report, c, expected = launched(source, 64)
    assert report.hazards == []
    assert np.array_equal(c, expected)


def test_a_product_with_a_in_registers():
    report, c, expected = launched(IN_REGISTERS, 64, "in registers")
    assert report.hazards == []
    assert np.array_equal(c, expected)


def test_beyond_the_matrix_a_box_is_zero():
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal((r, 72)).astype(np.float16) for r in (50, 10))
    c = np.full((ROWS, N), np.nan, np.float32)
    kernel = made(PIPELINE, "ragged")
    simulate(
        kernel, 1, 256, tensor_map(a, ROWS), tensor_map(b, N), 128, c,
        shared_bytes=STAGES * (ROWS + N) * 128 + 128,
    )  # fmt: skip
    whole = np.zeros((ROWS, 80), np.float16), np.zeros((N, 80), np.float16)
    whole[0][:50, :72], whole[1][:10, :72] = a, b
    expected = fused_dot_add(whole[0][:, None], whole[1][None], np.zeros((ROWS, N), np.float32))
    assert np.array_equal(c, expected)


# What changes (a line without its replacement is left out), the hazard, the line, and what it says.
WRONG = {
    "consumer does not wait for the copy": (
        PIPELINE, "mbarrier_wait(full, s, i // STAGES & 1)", "",
        "async-not-waited", "wgmma(acc, As, s, 0, 0,", "which the copy of line",
    ),
    "consumer waits with the wrong parity": (
        PIPELINE, "mbarrier_wait(full, s, i // STAGES & 1)",
        "mbarrier_wait(full, s, (i // STAGES & 1) ^ 1)",
        "deadlock", "mbarrier_wait(full", "phase 1 of full[0] is complete, which lacks 1 of 1",
    ),
    "fewer bytes are expected than come": (
        PIPELINE, "(full, s, (64 + N) * 128)", "(full, s, 64 * 128)",
        "async-not-waited", "wgmma(acc, As, s, 0, 0,", "reads Bs[",
    ),
    "more bytes are expected than come": (
        PIPELINE, "(full, s, (64 + N) * 128)", "(full, s, (65 + N) * 128)",
        "deadlock", "mbarrier_wait(full", "phase 0 of full[0] is complete, which lacks 128 bytes",
    ),
    "one copy is left out": (
        PIPELINE, "tma_load(Bs, s, 0, 0, B, 0, 64 * i, full, s)", "",
        "deadlock", "mbarrier_wait(full", "which lacks 2048 bytes",
    ),
    "producer does not wait for an empty stage": (
        PIPELINE, "mbarrier_wait(empty, s, (i // STAGES & 1) ^ 1)", "",
        "async-not-waited", "tma_load(As", "overwrites As[0, 0, 0], which the copy of line",
    ),
    "a stage is given back before its wgmma is complete": (
        PIPELINE, "wgmma_wait(0, acc)", "wgmma_wait(1, acc)",
        "shared-race", "tma_load(As", "which the wgmma of line",
    ),
    "nobody gives stages back": (
        PIPELINE, "mbarrier_arrive(empty, s)", "pass",
        "deadlock", "mbarrier_wait(empty", "which lacks 1 of 1 arrivals",
    ),
    "accumulators are read before the wait": (
        STORED, "wgmma_wait(0, acc)", "",
        "async-not-waited", "C[row", "reads acc[0], which the wgmma of line",
    ),
    "the last group is not waited for": (
        STORED, "wgmma_wait(0, acc)", "wgmma_wait(1, acc)",
        "async-not-waited", "C[row", "no wgmma_wait since has named it",
    ),
    "a group is not committed": (
        STORED, "wgmma_commit()", "",
        "async-not-waited", "C[row", "no wgmma_wait since has named it",
    ),
    "no fence after the accumulators are set": (
        PIPELINE, "wgmma_fence()", "",
        "missing-fence", "wgmma(acc, As, s, 0, 0,", "wgmma_fence() has to come between",
    ),
    "no fence after ordinary stores": (
        STORED, "fence_proxy_async()", "",
        "missing-fence", "wgmma(acc, As, 0, 0,", "fence_proxy_async() has to follow there",
    ),
    "only one thread fences its stores": (
        STORED, "    fence_proxy_async()", "    if thread == 0:\n        fence_proxy_async()",
        "missing-fence", "wgmma(acc, As, 0, 0,", "which thread (1) has written in line",
    ),
    "no fence after cp.async": (
        COPIED, "fence_proxy_async()", "",
        "missing-fence", "wgmma(acc, As, 0, 0,", "has written in line",
    ),
    "the fence before the wait for cp.async": (
        COPIED, "cp_async_wait(0)\n    fence_proxy_async()",
        "fence_proxy_async()\n    cp_async_wait(0)",
        "missing-fence", "wgmma(acc, As, 0, 0,", "has written in line",
    ),
    "no wait for cp.async": (
        COPIED, "cp_async_wait(0)", "",
        "async-not-waited", "wgmma(acc, As, 0, 0,", "reads As[0, 0], which the copy of line",
    ),
    "no barrier after ordinary stores": (
        STORED, "cuda.syncthreads()", "",
        "shared-race", "wgmma(acc, As, 0, 0,", "reads what thread",
    ),
    "no fence after mbarriers are made": (
        PIPELINE, "fence_mbarrier_init()", "",
        "missing-fence", "tma_load(As", "fence_mbarrier_init() has to follow",
    ),
    "no fence of a tensor map": (
        PIPELINE, "fence_tensor_map(A)", "",
        "missing-fence", "tma_load(As", "copies by the map of A",
    ),
    "no barrier after mbarriers are made": (
        PIPELINE, "cuda.syncthreads()", "",
        "shared-race", "mbarrier_wait(empty", "reads what thread (0) wrote",
    ),
    "an mbarrier that nobody has made": (
        PIPELINE, "mbarrier_init(empty, s, 1)", "",
        "uninitialised-read", "mbarrier_wait(empty", "is no mbarrier before mbarrier_init",
    ),
    "a box that is not aligned": (
        PIPELINE, "tma_load(As, s, 0, 0, A", "tma_load(As, s, 4, 0, A",
        "misaligned", "tma_load(As", "begins at a multiple of 1024",
    ),
    "a matrix that is not aligned": (
        STORED, "wgmma(acc, As, 0, 16, Bs, 0, 16, True)", "wgmma(acc, As, 0, 8, Bs, 0, 16, True)",
        "misaligned", "wgmma(acc, As, 0, 8,", "use multiples of 1024 and of 16",
    ),
    "a matrix beyond the tile": (
        STORED, "wgmma(acc, As, 0, 48, Bs, 0, 48, True)", "wgmma(acc, As, 0, 64, Bs, 0, 48, True)",
        "out-of-bounds", "wgmma(acc, As, 0, 64,", "its dimension 1 has 64 elements",
    ),
    "a box beyond shared memory's array": (
        PIPELINE, "tma_load(Bs, s, 0, 0, B", "tma_load(Bs, s + 1, 0, 0, A",
        "out-of-bounds", "tma_load(Bs", "reaches beyond Bs",
    ),
    "not the whole warpgroup multiplies": (
        STORED, "    wgmma(acc, As, 0, 48,", "    if thread < 96:\n        wgmma(acc, As, 0, 48,",
        "divergent-barrier", "wgmma(acc, As, 0, 48,", "needs all 128 threads of the warpgroup",
    ),
    "threads name different matrices": (
        STORED, "wgmma(acc, As, 0, 48, Bs", "wgmma(acc, As, 0, thread // 64 * 16, Bs",
        "divergent-barrier", "wgmma(acc, As, 0, thread", "all name the same one",
    ),
    "every thread of a warp copies": (
        PIPELINE, "if thread == 128:", "if thread < 160:",
        "async-not-waited", "tma_load(As", "overwrites As",
    ),
    "more registers than there are": (
        PIPELINE, "setmaxnreg_dec(24)", "",
        "deadlock", "setmaxnreg_inc", "others have given back",
    ),
    "adding to what nobody has set": (
        STORED, "Bs, 0, 0, False)", "Bs, 0, 0, True)",
        "uninitialised-read", "wgmma(acc, As, 0, 0,", "adds to acc[0]",
    ),
    "an ordinary store into a stage that is read": (
        STORED, "wgmma_commit()", "wgmma_commit()\n    As[thread % 64, 0] = 0",
        "shared-race", "As[thread % 64, 0]", "which the wgmma of line",
    ),
    "an ordinary read of a copy on its way": (
        PIPELINE, "mbarrier_wait(full, s, i // STAGES & 1)", "C[0, 0] = Bs[s, 0, thread % 64]",
        "async-not-waited", "C[0, 0] = Bs", "which the copy of line",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_twin_is_found_at_its_line(name):
    source, text, instead, kind, place, words = WRONG[name]
    assert text in source
    wrong = source.replace(text, instead or "pass" * bool(text.strip()), 1)
    k = 320 if source is PIPELINE else 64
    report, *_ = launched(wrong, k, name)
    first = report.hazards[0]
    if kind == "deadlock":  # each wait that does not end is one
        assert {h.kind for h in report.hazards} == {kind}
        first = next(h for h in report.hazards if place in h.code)
    assert (first.kind, place in first.code) == (kind, True), first
    assert words in first.message, first.message
    lines = wrong.splitlines()
    assert lines[first.line - 1].strip() == first.code.strip()


def test_warps_of_a_warpgroup_may_wait_for_each_other():
    report = simulate(in_one_warpgroup, 1, 128, out := np.zeros(32, np.int32), shared_bytes=64)
    assert report.hazards == []
    assert (out == np.arange(32) + 7).all()


ONE_WAITS = """
def kernel(A, B, k, C):
    s = shared_view((64, 64), float16, 0)
    bar = shared_view((1,), uint64, 64 * 128)
    t = cuda.threadIdx.x
    if t == 0:
        mbarrier_init(bar, 0, 1)
        fence_mbarrier_init()
        fence_tensor_map(A)
        mbarrier_arrive_expect(bar, 0, 64 * 128)
        tma_load(s, 0, 0, A, 0, 0, bar, 0)
        mbarrier_wait(bar, 0, 0)
    cuda.syncwarp()
    C[t, 0] = s[t, t // 8 * 8 ^ t % 8 * 8]
"""


@pytest.mark.parametrize(
    ("barrier", "threads"),
    [("cuda.syncwarp()", 32), ("cuda.syncthreads()", 64), ("cuda.syncwarp()", 64)],
)
def test_at_a_barrier_threads_learn_what_one_has_waited_for(barrier, threads):
    kernel = made(ONE_WAITS.replace("cuda.syncwarp()", barrier), f"{barrier} {threads}")
    a, b, c = operands(64)
    report = simulate(
        kernel, 1, threads, tensor_map(a, 64), b, 64, c, shared_bytes=1 << 14, on_hazard="collect"
    )
    if barrier == "cuda.syncwarp()" and threads == 64:  # the other warp knows nothing
        first = report.hazards[0]
        assert (first.kind, first.threads[0]) == ("async-not-waited", (32, 0, 0))
    else:
        assert report.hazards == []
        t = np.arange(threads)
        assert np.array_equal(c[:threads, 0], a[t, t // 8 * 8].astype(np.float32))


def in_one_warpgroup(out):
    bars = instructions.shared_view((1,), np.uint64, 0)
    s = cuda.shared.array(32, np.int32)
    t = cuda.threadIdx.x
    if t == 0:
        instructions.mbarrier_init(bars, 0, 32)
    cuda.syncthreads()
    if t < 32:
        instructions.mbarrier_wait(bars, 0, 0)
        out[t] = s[31 - t]
    elif t < 64:
        s[63 - t] = t - 32 + 7
        instructions.mbarrier_arrive(bars, 0)


# --------------------------------------------------------------------------------- what is compiled


def ptx_of(source, cc=(9, 0)):
    maps, number = ("uint8", 1), ("int64", 0)
    given = maps if "tma_load" in source else ("float16", 2)
    return compiled(made(source, f"compiled {cc}"), given, given, number, ("float32", 2), cc=cc)


@pytest.mark.parametrize("form", ["f16", "bf16"])
def test_a_product_in_either_format(form):
    """The same small whole numbers in both: bfloat16 in words of 16 bits."""
    rng = np.random.default_rng(4)
    a, b = (rng.integers(-8, 9, (rows, 64)).astype(np.float32) for rows in (ROWS, N))
    source, given = STORED, (a.astype(np.float16), b.astype(np.float16))
    if form == "bf16":
        source = STORED.replace("float16", "uint16").replace("wgmma(", "wgmma_m64n16k16_f32_bf16(")
        given = to_memory(a, "bfloat16"), to_memory(b, "bfloat16")
    c = np.full((ROWS, N), np.nan, np.float32)
    simulate(made(source, form), 1, 128, *given, 64, c, shared_bytes=1 << 14)
    assert np.array_equal(c, a @ b.T)


@pytest.mark.ptxas
@pytest.mark.parametrize(
    "source",
    [PIPELINE, STORED, COPIED, IN_REGISTERS],
    ids=["pipeline", "stored", "copied", "registers"],
)
def test_it_compiles_to_the_instructions_that_are_declared(source):
    text = ptx_of(source)
    used = [x for x in vars(instructions).values() if isinstance(x, Instruction)]
    used = [x for x in used if re.search(rf"\b{x.name}\(", source)]
    used += [instructions.WGMMA[N, "nt"], instructions.WGMMA_WAIT[N]]
    assert len(used) >= 5
    for instruction in used:
        mnemonic = re.search(r"[a-z]+(\.\w+(::\w+)*)+", instruction.ptx.split(", 0; ", 1)[-1])[0]
        assert mnemonic in text, instruction
    assert "sm_90" in text
    _, taken = assemble(text, "sm_90")
    assert taken.local_bytes == 0


@pytest.mark.ptxas
@pytest.mark.parametrize("cc", [(8, 0), (10, 0)])
def test_another_architecture_is_refused_by_name(cc):
    have = f"{cc[0]}.{cc[1]}"
    with pytest.raises(Exception, match=f"needs compute capability 9.0.*, this GPU has {have}"):
        ptx_of(STORED, cc)


def test_the_simulated_gpu_of_another_architecture_refuses_too():
    a, b, c = operands(64)
    kernel = made(STORED, "old")
    with pytest.raises(UnsupportedError, match=r"needs compute capability 9\.0"):
        simulate(kernel, 1, 128, a, b, 64, c, shared_bytes=1 << 14, device="a100_80gb")


@pytest.mark.parametrize(
    ("text", "instead", "message"),
    [
        ("float32)\n    wgmma_fence", "float16)\n    wgmma_fence", "local array of 8 float32"),
        ("array(HALF, float32)", "array(4, float32)", "use a local array of 8 float32"),
        ("As = shared_view((64, 64), float16", "As = shared_view((64, 64), uint16",
         "multiplies float16, not uint16"),
        ("As = shared_view((64, 64)", "As = shared_view((128, 32)",
         "rows of As have 32 elements; those of the 128-byte swizzle have 64"),
    ],
)  # fmt: skip
def test_what_an_instruction_does_not_take(text, instead, message):
    assert text in STORED
    source = STORED.replace(text, instead)
    if "32)" in instead and "128" in instead:
        source = source.replace("i // 64, i % 64 ^ i // 64 % 8 * 8] = A", "i // 32, i % 32] = A")
    with pytest.raises(TypeError, match=message):
        launched(source, 64, f"misused {message}")


def test_a_kernel_takes_a_map_where_it_copies_by_one():
    a, b, c = operands(64)
    with pytest.raises(TypeError, match="the host makes one by tensor_map"):
        simulate(made(PIPELINE, "no map"), 1, 256, a, b, 64, c, shared_bytes=1 << 15)


# -------------------------------------------------------------------------------- what it computes


@pytest.mark.parametrize("n", instructions.warpgroup.COLUMNS)
def test_each_element_of_d_is_in_one_register_of_one_thread(n):
    rows, columns = places(n)
    assert len(set(zip(rows.ravel(), columns.ravel(), strict=True))) == 64 * n == rows.size
    # Typed a second time from PTX ISA 9.0, "Register Fragments for wgmma.mma_async": thread t of
    # 128 and its register i.
    for t, i in [(0, 0), (5, 1), (33, 2), (127, n // 2 - 1)]:
        assert rows[t, i] == 16 * (t // 32) + t % 32 // 4 + 8 * (i // 2 % 2)
        assert columns[t, i] == 8 * (i // 4) + 2 * (t % 4) + i % 2

"""Clusters: blocks that share a copied tile; what is right stays silent, each wrong twin is found.

The kernels are made of one source, as those of `test_asynchronous`: two blocks have 64 rows of A
each, share the columns of B, of which each copies half to both, and multiply.
"""

import numpy as np
import pytest

from gemmlab import simulate
from gemmlab.compiled.sass.compiling import listing
from gemmlab.compiled.sass.execution.machine import counters, launch
from gemmlab.here.compilers import assemble
from gemmlab.instructions import tensor_map
from gemmlab.numerics import fused_dot_add
from gemmlab.simt.numbers.lanes import Launch
from tests.support.asynchronous import STAGES, N, made
from tests.support.ptx import compiled

ROWS, BLOCKS = 64, 2

PIPELINE = """
def kernel(A, B, k, C):
    As = shared_view((STAGES, 64, 64), float16, 0)
    Bs = shared_view((STAGES, N, 64), float16, STAGES * 64 * 128)
    full = shared_view((STAGES,), uint64, STAGES * (64 + N) * 128)
    empty = shared_view((STAGES,), uint64, STAGES * (64 + N) * 128 + 64)
    thread, rank = cuda.threadIdx.x, cuda.blockIdx.x % 2
    if thread == 0:
        for s in range(STAGES):
            mbarrier_init(full, s, 1)
            mbarrier_init(empty, s, 2)
        fence_mbarrier_init()
    cluster_sync()
    steps = k // 64
    if thread >= 128:
        setmaxnreg_dec(24)
        if thread == 128:
            fence_tensor_map(A)
            fence_tensor_map(B)
            half = rank * (N // 2)
            for i in range(steps):
                s = i % STAGES
                mbarrier_wait(empty, s, (i // STAGES & 1) ^ 1)
                mbarrier_arrive_expect(full, s, (64 + N) * 128)
                tma_load(As, s, 0, 0, A, 64 * rank, 64 * i, full, s)
                tma_load_multicast(Bs, s, half, 0, B, half, 64 * i, full, s, uint32(3))
    else:
        setmaxnreg_inc(256)
        acc = cuda.local.array(HALF, float32)
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
            if thread < 2:
                mbarrier_arrive_remote(empty, s, uint32(thread))
        for r in range(HALF):
            row = 64 * rank + thread // 32 * 16 + thread % 32 // 4 + r // 2 % 2 * 8
            C[row, r // 4 * 8 + thread % 4 * 2 + r % 2] = acc[r]
    cluster_sync()
"""


def launched(source, k, name="right", cluster=BLOCKS):
    rng = np.random.default_rng(k)
    rows = BLOCKS * ROWS
    a, b = (rng.standard_normal((size, k)).astype(np.float16) for size in (rows, N))
    c = np.full((rows, N), np.nan, np.float32)
    report = simulate(
        made(source, f"cluster {name}"), BLOCKS, 256, tensor_map(a, ROWS), tensor_map(b, N // 2), k,
        c, shared_bytes=STAGES * (ROWS + N) * 128 + 128, on_hazard="collect", cluster=cluster,
    )  # fmt: skip
    return report, c, fused_dot_add(a[:, None], b[None], np.zeros((rows, N), np.float32))


@pytest.mark.parametrize("k", [64, 320])
def test_a_shared_tile_is_multiplied_to_the_bit_and_read_once(k):
    report, c, expected = launched(PIPELINE, k)
    assert report.hazards == []
    assert np.array_equal(c, expected)
    assert report.counters["tensor_copy_bytes"] == (BLOCKS * ROWS + N) * 128 * (k // 64)


# What changes, the hazard, the line, and what it says.
WRONG = {
    "no barrier of the cluster after mbarriers are made": (
        "    cluster_sync()\n    steps", "    cuda.syncthreads()\n    steps",
        "uninitialised-read", "tma_load_multicast", "cluster_sync() has to come between",
    ),
    "no barrier of the cluster at the end": (
        "acc[r]\n    cluster_sync()", "acc[r]",
        "async-not-waited", "mbarrier_arrive_remote", "cluster_sync() has to come before the end",
    ),
    "stages are given back to one block alone": (
        "mbarrier_arrive_remote(empty, s, uint32(thread))",
        "mbarrier_arrive_remote(empty, s, uint32(rank))",
        "async-not-waited", "tma_load_multicast", "overwrites Bs[0, 8, 0], which the copy of line",
    ),
    "an arrival too few is waited for": (
        "mbarrier_init(empty, s, 2)", "mbarrier_init(empty, s, 1)",
        "async-not-waited", "tma_load(As", "overwrites As[0, 0, 0], which the copy of line",
    ),
    "a half is sent to one block alone": (
        "uint32(3)", "uint32(1)",
        "deadlock", "mbarrier_wait(full", "which lacks 2048 bytes",
    ),
    "a block that the cluster has not": (
        "uint32(3)", "uint32(7)",
        "out-of-bounds", "tma_load_multicast", "block 2 of its cluster, which has 2",
    ),
    "a barrier of the cluster in a branch": (
        "    cluster_sync()\n    steps", "    if thread < 128:\n        cluster_sync()\n    steps",
        "shared-race", "mbarrier_wait(empty", "reads what thread (0) wrote",
    ),
    "an ordinary read of what the other block sends": (
        "mbarrier_wait(full, s, i // STAGES & 1)", "C[0, 0] = Bs[s, thread % N, 0]",
        "async-not-waited", "C[0, 0] = Bs", "which the copy of line",
    ),
    "ordinary reads that nobody has told the sender of": (
        "            wgmma_fence()\n",
        "            wgmma_fence()\n            if i == 0 and thread == 5:\n"
        "                C[5, 5] = Bs[s, 0, 0] + Bs[s, N // 2, 0]\n",
        "shared-race", "tma_load_multicast", "it does not know that this is over",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_twin_is_found_at_its_line(name):
    text, instead, kind, place, words = WRONG[name]
    assert text in PIPELINE
    wrong = PIPELINE.replace(text, instead, 1)
    report, *_ = launched(wrong, 320, name)
    found = [h for h in report.hazards if (h.kind, place in h.code) == (kind, True)]
    assert found, report.hazards
    assert any(words in h.message for h in found), found
    assert report.hazards[0].kind == kind, report.hazards[0]


def test_a_block_that_has_ended_is_out_of_reach():
    source = """
def kernel(x):
    bars = shared_view((1,), uint64, 0)
    if cuda.threadIdx.x == 0:
        mbarrier_init(bars, 0, 1)
        fence_mbarrier_init()
    cluster_sync()
    if cuda.blockIdx.x == 1 and cuda.threadIdx.x == 0:
        mbarrier_init(bars, 0, 1)
        mbarrier_arrive(bars, 0)
        mbarrier_wait(bars, 0, uint32(0))
        mbarrier_arrive_remote(bars, 0, uint32(0))
"""
    kernel = made(source, "ended")
    report = simulate(kernel, 2, 128, np.zeros(1), shared_bytes=16, on_hazard="collect", cluster=2)
    (found,) = (h for h in report.hazards if "mbarrier_arrive_remote" in h.code)
    assert found.kind in ("out-of-bounds", "async-not-waited")
    assert "cluster_sync() has to come before the end" in found.message


APART = """
def kernel(x):
    bars = shared_view((1,), uint64, 0)
    if cuda.threadIdx.x == 0:
        mbarrier_init(bars, 0, 1)
        fence_mbarrier_init()
    cluster_sync()
    if cuda.blockIdx.x == 1:
        mbarrier_wait(bars, 0, uint32(0))
    cluster_sync()
    if cuda.blockIdx.x == 0 and cuda.threadIdx.x == 0:
        mbarrier_arrive_remote(bars, 0, uint32(1))
    cluster_sync()
"""


def test_a_block_that_does_not_come_is_named():
    kernel, x = made(APART, "apart"), np.zeros(1)
    report = simulate(kernel, 2, 128, x, shared_bytes=16, on_hazard="collect", cluster=2)
    found = [h for h in report.hazards if h.kind in ("divergent-barrier", "deadlock")]
    assert found
    assert any("block (1)" in h.message for h in found), found


def test_blocks_meet_wherever_they_call():
    """A barrier of the cluster counts threads, not places."""
    source = """
def kernel(x):
    if cuda.blockIdx.x % 2 == 0:
        x[cuda.blockIdx.x + 1, cuda.threadIdx.x] = 1
        cluster_sync()
    else:
        cluster_sync()
        x[cuda.blockIdx.x, cuda.threadIdx.x] += 1
"""
    x = np.zeros((4, 128))
    report = simulate(made(source, "places"), 4, 128, x, on_hazard="collect", cluster=2)
    assert report.hazards == []
    assert np.array_equal(x[1::2], np.full((2, 128), 2.0))


IN_ORDER = """
def kernel(x, y):
    rank = cuda.blockIdx.x % 2
    x[cuda.blockIdx.x, cuda.threadIdx.x] = cuda.threadIdx.x
    cluster_sync()
    y[cuda.blockIdx.x, cuda.threadIdx.x] = x[cuda.blockIdx.x + 1 - 2 * rank, cuda.threadIdx.x]
"""


def test_a_barrier_of_the_cluster_puts_global_memory_in_order():
    x, y = np.zeros((4, 128)), np.zeros((4, 128))
    report = simulate(made(IN_ORDER, "in order"), 4, 128, x, y, on_hazard="collect", cluster=2)
    assert report.hazards == []
    assert np.array_equal(y, np.tile(np.arange(128.0), (4, 1)))


SENT = """
def kernel(A, x, y):
    tile = shared_view((64, 64), float16, 0)
    full = shared_view((1,), uint64, 64 * 128)
    rank, thread = cuda.blockIdx.x, cuda.threadIdx.x
    if thread == 0:
        mbarrier_init(full, 0, 1)
        fence_mbarrier_init()
    cluster_sync()
    if thread == 0:
        if rank == 0:
            x[0] = 1
            fence_tensor_map(A)
        mbarrier_arrive_expect(full, 0, 64 * 128)
        if rank == 0:
            tma_load_multicast(tile, 0, 0, A, 0, 0, full, 0, uint32(3))
    mbarrier_wait(full, 0, uint32(0))
    if rank == 1:
        y[thread] = tile[0, 0] + x[0]
    cluster_sync()
"""


def sent(source):
    a, x, y = np.ones((64, 64), np.float16), np.zeros(1), np.zeros(128)
    how = {"shared_bytes": 64 * 128 + 16, "on_hazard": "collect", "cluster": 2}
    return {
        (h.kind, h.code.strip())
        for h in simulate(made(source, "sent"), 2, 128, tensor_map(a, 64), x, y, **how).hazards
    }


def test_a_copy_that_has_come_tells_nothing_of_what_its_sender_has_stored():
    race = ("global-race", "y[thread] = tile[0, 0] + x[0]")
    assert sent(SENT) == {race}
    assert sent(SENT.replace("            x[0] = 1\n", "")) == set()
    assert sent(SENT.replace("tile[0, 0] + x[0]", "tile[0, 0]")) == set()


@pytest.mark.parametrize(
    ("text", "instead"),
    [
        ("cluster_sync()", "cuda.syncthreads()"),
        ("cluster_sync()", "cluster_sync_relaxed()"),
        ("cuda.blockIdx.x + 1 - 2 * rank", "1 - rank"),
    ],
    ids=["a barrier of the block", "one that waits for no stores", "another cluster's block"],
)
def test_what_a_barrier_of_the_cluster_does_not_put_in_order_is_a_race(text, instead):
    kernel = made(IN_ORDER.replace(text, instead), instead)
    x, y = np.zeros((4, 128)), np.zeros((4, 128))
    report = simulate(kernel, 4, 128, x, y, on_hazard="collect", cluster=2)
    assert "global-race" in {h.kind for h in report.hazards}


def test_a_relaxed_barrier_shows_mbarriers_and_nothing_that_was_stored():
    """Mbarriers are seen, by the fence of who made them; what threads stored is not."""
    relaxed = PIPELINE.replace("cluster_sync()", "cluster_sync_relaxed()", 1)
    report, c, right = launched(relaxed, 64, "relaxed")
    assert report.hazards == []
    assert np.array_equal(c, right)
    assert "mbarrier" in str(
        launched(relaxed.replace("        fence_mbarrier_init()\n", ""), 64)[0].hazards
    )
    shared = """
def kernel(x):
    tile = shared_view((128,), float32, 0)
    tile[cuda.threadIdx.x] = cuda.threadIdx.x
    cluster_sync()
    x[cuda.blockIdx.x, cuda.threadIdx.x] = tile[127 - cuda.threadIdx.x]
"""
    for barrier, kinds in (("cluster_sync", set()), ("cluster_sync_relaxed", {"shared-race"})):
        kernel = made(shared.replace("cluster_sync", barrier), barrier)
        how = {"shared_bytes": 512, "on_hazard": "collect", "cluster": 2}
        report = simulate(kernel, 2, 128, np.zeros((2, 128)), **how)
        assert {h.kind for h in report.hazards} == kinds


EXCHANGE = """
def kernel(x):
    sums = shared_view((128, 4), float32, 0)
    come = shared_view((1,), uint64, 2048)
    thread, rank = cuda.threadIdx.x, cuda.blockIdx.x % 2
    if thread == 0:
        mbarrier_init(come, 0, 1)
        fence_mbarrier_init()
        mbarrier_arrive_expect(come, 0, 2048)
    cluster_sync_relaxed()
    v = float32(thread)
    four = v, v + rank, float32(2), float32(3)
    store_async_v4(sums, thread, 0, come, 0, four, uint32(1 - rank))
    mbarrier_wait(come, 0, uint32(0))
    for j in range(4):
        x[cuda.blockIdx.x, thread, j] = sums[127 - thread, j]
"""


def exchanged(source, name="exchange"):
    x = np.zeros((2, 128, 4), np.float32)
    how = {"shared_bytes": 2056, "on_hazard": "collect", "cluster": 2}
    return simulate(made(source, name), 2, 128, x, **how), x


def test_what_a_block_of_the_cluster_stores_is_there_once_its_bytes_are():
    report, x = exchanged(EXCHANGE)
    assert report.hazards == []
    v = np.arange(127.0, -1, -1)
    for block in range(2):
        assert np.array_equal(x[block].T, [v, v + 1 - block, np.full(128, 2), np.full(128, 3)])
    assert report.counters["cluster_store_bytes"] == 2 * 2048
    assert report.instructions["inst_async_store"] == 2 * 4


# What changes, the hazard, the line, and what it says.
ASTRAY = {
    "nobody waits for it": (
        "    mbarrier_wait(come, 0, uint32(0))\n", "",
        "async-not-waited", "sums[127 - thread, j]", "which the copy of line 13 may not have",
    ),
    "nobody waits, and the block ends": (
        "    mbarrier_wait(come, 0, uint32(0))\n    for j in range(4):\n"
        "        x[cuda.blockIdx.x, thread, j] = sums[127 - thread, j]\n", "",
        "async-not-waited", "store_async_v4", "the block ends while the copy of thread",
    ),
    "the other's mbarrier may not be made": (
        "cluster_sync_relaxed()", "cuda.syncthreads()",
        "uninitialised-read", "store_async_v4", "cluster_sync() has to come between",
    ),
    "more bytes are expected than come": (
        "expect(come, 0, 2048)", "expect(come, 0, 2064)",
        "deadlock", "mbarrier_wait", "which lacks 16 bytes",
    ),
    "it goes to another block than waits": (
        "uint32(1 - rank)", "uint32(0)",
        "deadlock", "mbarrier_wait", "which lacks 2048 bytes",
    ),
    "a block that the cluster has not": (
        "uint32(1 - rank)", "uint32(2)",
        "out-of-bounds", "store_async_v4", "block 2 of its cluster, which has 2",
    ),
    "the other block may still use what is overwritten": (
        "    v = float32(thread)", "    sums[thread, 0] = 1\n    v = float32(thread)",
        "shared-race", "store_async_v4", "it does not know that this is over",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ASTRAY)
def test_a_store_that_goes_astray_is_found(name):
    text, instead, kind, place, words = ASTRAY[name]
    assert text in EXCHANGE
    report, _ = exchanged(EXCHANGE.replace(text, instead, 1), name)
    found = [h for h in report.hazards if (h.kind, place in h.code) == (kind, True)]
    assert any(words in h.message for h in found), report.hazards


@pytest.mark.ptxas
@pytest.mark.measuring
def test_compiled_stores_are_counted_by_the_block_they_go_to_and_wait_for_no_memory():
    """One block is executed, to which as much comes as it sends: else it would not end."""
    x = np.zeros((2, 128, 4), np.float32)
    code = listing(made(EXCHANGE, "stores"), (x,))
    opcodes = {i.opcode for i in code.instructions}
    assert {"STAS.128", "UCGABAR_ARV", "UCGABAR_WAIT"} <= opcodes
    assert not any(opcode.startswith("MEMBAR") for opcode in opcodes)
    visits = launch(code, 1, 128, x, shared_bytes=2056).run()
    assert counters(visits)["cluster_store_bytes"] == 2048


def test_stores_to_a_block_are_of_float32():
    wrong = EXCHANGE.replace("(128, 4), float32", "(256, 4), float16")
    with pytest.raises(TypeError, match="stores float32, not to an array of float16"):
        exchanged(wrong, "float16")


def test_arrays_that_other_blocks_need_not_have_are_refused():
    source = """
def kernel(x):
    bars = cuda.shared.array(1, uint64)
    if cuda.threadIdx.x == 0:
        mbarrier_init(bars, 0, 1)
    cluster_sync()
    mbarrier_arrive_remote(bars, 0, uint32(1))
"""
    with pytest.raises(TypeError, match="by shared_view alone"):
        simulate(made(source, "static"), 2, 128, np.zeros(1), cluster=2)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"cluster": 16}, r"cluster=\(16, 1, 1\) has 16 blocks; use at most 8"),
        ({"cluster": 4}, r"\(6, 1, 1\) blocks is no whole number of clusters of \(4, 1, 1\)"),
        ({"cluster": 2, "device": "a100_80gb"}, "has no clusters"),
        ({"cluster": 0}, "cluster"),
    ],
)
def test_a_launch_that_no_gpu_takes(how, message):
    with pytest.raises(ValueError, match=message):
        simulate(made(IN_ORDER, "refused"), 6, 128, np.zeros((6, 128)), np.zeros((6, 128)), **how)


def test_ranks_go_through_a_cluster_x_first():
    launch = Launch((4, 2, 1), (32, 1, 1), 0, 1, True, None, cluster=(2, 2, 1))
    assert launch.clusters().tolist() == [[0, 1, 4, 5], [2, 3, 6, 7]]


@pytest.mark.ptxas
def test_it_compiles_to_the_instructions_that_are_declared():
    arguments = ("uint8", 1), ("uint8", 1), ("int64", 0), ("float32", 2)
    text = compiled(made(PIPELINE, "compiled"), *arguments, cc=(9, 0))
    for name in ("barrier.cluster.arrive;", "multicast::cluster", "mapa.shared::cluster"):
        assert name in text
    # An H100 never ended where lanes of a warp came to an aligned one at different times.
    assert "barrier.cluster.arrive.aligned" not in text
    _, taken = assemble(text, "sm_90")
    assert taken.local_bytes == 0

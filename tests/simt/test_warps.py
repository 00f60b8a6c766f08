"""Shuffles, votes and bits: what a warp does together."""

import numpy as np
import pytest
from numpy import float32

from gemmlab import cuda, simulate
from gemmlab.simt import HazardError
from gemmlab.simt.numbers import bits
from tests.support.launches import lines

FULL = 0xFFFFFFFF


def shuffles(x, out):
    i = cuda.grid(1)
    v = x[i]
    out[0, i] = cuda.shfl_sync(FULL, v, 5)
    out[1, i] = cuda.shfl_up_sync(FULL, v, 3)
    out[2, i] = cuda.shfl_down_sync(FULL, v, 30)
    out[3, i] = cuda.shfl_xor_sync(FULL, v, 9)
    out[4, i] = cuda.shfl_sync(FULL, v, (i * 7) % 32)


def test_shuffles():
    x, out = np.random.default_rng(5).standard_normal(128).astype(np.float32), np.zeros((5, 128))
    report = simulate(shuffles, 2, 64, x, out)
    w, lane = x.reshape(4, 32), np.arange(32)
    sources = [np.full(32, 5), np.where(lane >= 3, lane - 3, lane),
               np.where(lane < 2, lane + 30, lane), lane ^ 9, lane * 7 % 32]  # fmt: skip
    for row, source in zip(out, sources, strict=True):
        np.testing.assert_array_equal(row, w[:, source].ravel())
    assert report.instructions["inst_shuffle"] == 5 * 4


def votes(x, out):
    i = cuda.grid(1)
    p = x[i] > 0
    out[0, i] = cuda.all_sync(FULL, p)
    out[1, i] = cuda.any_sync(FULL, p)
    out[2, i] = cuda.eq_sync(FULL, p)
    out[3, i] = cuda.ballot_sync(FULL, p)
    out[4, i] = cuda.match_any_sync(FULL, int(x[i]))
    out[5, i] = cuda.match_all_sync(FULL, int(x[i]))[1]
    if p:
        out[6, i] = cuda.activemask()
        out[7, i] = cuda.ballot_sync(cuda.activemask(), x[i] > 1)
    out[8, i] = cuda.popc(cuda.ballot_sync(FULL, p) & cuda.lanemask_lt()) + cuda.laneid


def test_votes():
    x = np.random.default_rng(6).integers(-2, 3, 128).astype(np.float32)
    x[32:64], x[64:96] = 1, -1
    out = np.zeros((9, 128))
    report = simulate(votes, 2, 64, x, out)
    assert report.hazards == []
    for w in range(4):
        at = slice(32 * w, 32 * w + 32)
        v, p = x[at], x[at] > 0

        def bits_of(lanes):
            return sum(1 << int(i) for i in np.flatnonzero(lanes))

        def signed(n):
            return n - (1 << 32) if n >> 31 else n

        assert (out[0, at] == p.all()).all()
        assert (out[1, at] == p.any()).all()
        assert (out[2, at] == (p.all() or not p.any())).all()
        assert (out[3, at] == signed(bits_of(p))).all()
        assert out[4, at].tolist() == [signed(bits_of(v == n)) for n in v]
        assert (out[5, at] == (v == v[0]).all()).all()
        assert (out[6, at] == np.where(p, bits_of(p), 0)).all()
        assert (out[7, at] == np.where(p, signed(bits_of(v > 1)), 0)).all()
        expected = [bits_of(p[:n]).bit_count() + n for n in range(32)]
        assert out[8, at].tolist() == expected


def warp_sum(x, out, waits):
    part = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    part[t] = x[t]
    for step in range(5):
        if waits:
            cuda.syncwarp()
        v = part[t // 32 * 32 + (t + (1 << step)) % 32]
        if waits:
            cuda.syncwarp()
        part[t] += v  # fault
    out[t] = part[t]


def between_warps(x, out):
    part = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    part[t] = x[t]
    cuda.syncwarp()
    out[t] = part[63 - t]  # fault


def test_a_warp_that_waits_for_itself_has_no_race():
    x, out = np.arange(64, dtype=np.float32), np.zeros(64)
    assert simulate(warp_sum, 1, 64, x, out, True).hazards == []
    np.testing.assert_array_equal(out, x.reshape(2, 32).sum(axis=1).repeat(32))
    found = simulate(warp_sum, 1, 64, x, out, False, on_hazard="collect").hazards
    assert "shared-race" in [h.kind for h in found]
    with pytest.raises(HazardError, match=r"reads what thread \(63\) wrote") as caught:
        simulate(between_warps, 1, 64, x, out)
    assert "# fault" in caught.value.hazard.code


def half_a_warp(x):
    t = cuda.threadIdx.x
    if t < 16:
        x[t] = cuda.shfl_down_sync(0xFFFF, x[t], 1)  # fault


def named_but_absent(x):
    if cuda.threadIdx.x < 16:
        x[0] = cuda.any_sync(FULL, 1)  # fault


def left_out(x):
    cuda.any_sync(1, 1)  # fault


@pytest.mark.parametrize(
    ("kernel", "kind", "text"),
    [
        (half_a_warp, "uninitialised-read", r"thread \(15\) reads lane 16 in cuda.shfl_down_sync"),
        (named_but_absent, "divergent-barrier", r"\(0\) waits in cuda.any_sync for thread \(16\)"),
        (left_out, "divergent-barrier", r"thread \(1\) calls cuda.any_sync with a mask that"),
    ],
)
def test_hazards_of_warps(kernel, kind, text):
    with pytest.raises(HazardError, match=text) as caught:
        simulate(kernel, 1, 32, np.zeros(32))
    assert caught.value.hazard.kind == kind
    assert "# fault" in caught.value.hazard.code


def block_votes(x, out):
    i, t = cuda.grid(1), cuda.threadIdx.x
    if i < x.size:
        return
    n = cuda.syncthreads_count(int(t % 3 == 0))
    out[i] = n + 100 * cuda.syncthreads_and(int(t < 40)) + 1000 * cuda.syncthreads_or(int(t == 39))


def test_barriers_that_vote():
    out = np.zeros(80)
    report = simulate(block_votes, 2, 40, np.zeros(45), out)
    assert (out[:45] == 0).all()
    assert (out[45:] == sum(t % 3 == 0 for t in range(5, 40)) + 1100).all()
    assert report.counters["barriers"] == 3
    assert report.hazards == []


def bit_functions(x, out):
    i = cuda.grid(1)
    out[0, i] = cuda.popc(x[i])
    out[1, i] = cuda.clz(x[i])
    out[2, i] = cuda.ffs(x[i])
    out[3, i] = cuda.brev(x[i])
    out[4, i] = cuda.selp(x[i] > 5, i, -1)
    cuda.threadfence()
    cuda.threadfence_block()
    cuda.syncwarp()


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int64, np.uint64])
def test_bits(dtype):
    x = np.array([0, 1, 6, 2**30, 12345, 2**31 - 1, 17, 8], dtype)
    x = np.concatenate([x, ~x])
    width = x.itemsize * 8
    out = np.zeros((5, 16), np.uint64 if x.itemsize == 8 else np.int64)
    with np.errstate(all="ignore"):
        simulate(bit_functions, 1, 16, x, out)
    for column, value in zip(out.T, x, strict=True):
        text = format(int(value) % 2**width, f"0{width}b")
        place = text[::-1].find("1") + 1
        turned = text if dtype == np.uint64 else text[-32:]  # Numba: brev.b64 of uint64 alone
        assert column[:4].tolist() == [
            text.count("1"), width - len(text.lstrip("0")), place, int(turned[::-1], 2)
        ]  # fmt: skip
    assert int(bits.popc(np.int32(-1))) == 32


def waits_and_shuffles(x):
    v = x[cuda.threadIdx.x]
    cuda.syncwarp()  # waits
    x[cuda.threadIdx.x] = cuda.shfl_xor_sync(FULL, v, 1)
    cuda.syncwarp()


def test_a_wait_of_the_warp_is_no_shuffle():
    report = simulate(waits_and_shuffles, 1, 64, np.arange(64, dtype=np.float32))
    assert report.instructions["inst_syncwarp"] == 2 * 2
    assert report.instructions["inst_shuffle"] == 2
    assert report.instructions["inst_barrier"] == 0
    assert report.counters["barriers"] == 0
    assert lines(report)["cuda.syncwarp()  # waits"]["inst_syncwarp"] == 2

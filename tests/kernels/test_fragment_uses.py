"""Three uses of fragments: each equals the bit-exact product, in registers and through memory."""

from types import SimpleNamespace

import numpy as np
import pytest

from gemmlab import simulate
from gemmlab.kernels.fragments import (
    SIZES,
    WHERE,
    angles,
    givens,
    givens_matrix,
    householder,
    householder_matrix,
    launch,
    matrices,
    prefix_sum,
    prefix_sum_matrix,
    vectors,
)
from tests.support.chained import chained
from tests.support.ptx import compiled

BATCH = 5  # the last block has three warps with nothing to do


def run(kernel, words, data, p, q):
    batch, m, _ = words.shape
    y = np.full((batch, m, m), np.nan, np.float32)
    report = simulate(kernel, *launch(batch), words, data, p, q, y)
    return y, report.counters


def cases(m, rng):
    """name -> build(where), data, p, q, M of each matrix of the batch."""
    v, cs = vectors(rng, BATCH, m), angles(rng, BATCH)
    p, q = 3, m - 2
    return {
        "prefix sum": (lambda w: prefix_sum(m, w), v, 0, 0, prefix_sum_matrix(m)[None]),
        "householder": (lambda w: householder(m, w), v, 0, 0, householder_matrix(v)),
        "givens": (lambda w: givens(m, w), cs, p, q, givens_matrix(cs, m, p, q)),
        "givens, embedded": (
            lambda w: givens(m, w, (p, q)), cs, -1, -1, givens_matrix(cs, m, p, q),
        ),
    }  # fmt: skip


NAMES = ("prefix sum", "householder", "givens", "givens, embedded")


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("m", SIZES)
@pytest.mark.parametrize("name", NAMES)
def test_is_the_product_to_the_bit(name, m, where):
    rng = np.random.default_rng(m)
    x, words = matrices(rng, BATCH, m)
    build, data, p, q, matrix = cases(m, rng)[name]
    y, counters = run(build(where), words, data, p, q)
    assert np.array_equal(y, chained(x, matrix, np.zeros_like(y)))
    through = counters.get("shared_load_requests", 0) + counters.get("shared_store_requests", 0)
    assert (through > 0) == (where != "registers")


@pytest.mark.parametrize("m", SIZES)
def test_prefix_sum_of_small_integers_is_exact(m):
    x = np.random.default_rng(0).integers(-8, 9, (BATCH, m, m)).astype(np.float16)
    y, _ = run(prefix_sum(m, "registers"), x.view(np.uint32), np.zeros((1, 1)), 0, 0)
    assert np.array_equal(y, np.cumsum(x.astype(np.float64), axis=2))


@pytest.mark.parametrize("m", SIZES)
def test_householder_reflects(m):
    rng = np.random.default_rng(1)
    v = vectors(rng, BATCH, m)
    x = np.ascontiguousarray(np.broadcast_to(v[:, None, :], (BATCH, m, m)))
    y, _ = run(householder(m, "registers"), x.view(np.uint32), v, 0, 0)
    assert np.abs(y + x.astype(np.float32)).max() < 4e-3  # v·H = −v but for float16's rounding


def test_givens_turns_two_columns_and_leaves_the_rest():
    x, words = matrices(np.random.default_rng(2), BATCH, 16)
    quarter = np.tile(np.float32([0, 1]), (BATCH, 1))
    y, _ = run(givens(16, "registers"), words, quarter, 4, 9)
    others = [c for c in range(16) if c not in (4, 9)]
    assert np.array_equal(y[..., others], x[..., others])
    assert np.array_equal(y[..., 9], x[..., 4])
    assert np.array_equal(y[..., 4], -x[..., 9])


@pytest.mark.parametrize("where", WHERE[1:])
@pytest.mark.parametrize("m", SIZES)
@pytest.mark.parametrize("name", NAMES[:2])
def test_baselines_make_no_bank_conflict(name, m, where):
    rng = np.random.default_rng(3)
    _, words = matrices(rng, BATCH, m)
    build, data, p, q, _ = cases(m, rng)[name]
    _, counters = run(build(where), words, data, p, q)
    assert counters.get("shared_bank_conflicts", 0) == 0
    # A warp's M is 2·m² bytes: in accesses of 128 bytes, or one element of each lane at a time.
    stores = m * m // (8 if where == "shared" else 1) // 32
    assert counters["shared_store_requests"] == BATCH * stores
    assert counters["shared_store_wavefronts"] == BATCH * stores * (4 if where == "shared" else 1)


@pytest.mark.parametrize("build", [prefix_sum, householder, givens])
def test_what_is_not_known_is_refused(build):
    with pytest.raises(ValueError, match="m=8; use one of 16, 32"):
        build(8, "shared")
    with pytest.raises(ValueError, match="where='memory'; use one of 'registers', 'shared'"):
        build(16, "memory")


@pytest.mark.parametrize("columns", [(3, 3), (-1, 2), (5, 16)])
def test_columns_outside_are_refused(columns):
    with pytest.raises(ValueError, match=r"use two different columns from 0 to 15"):
        givens(16, "registers", columns)


further = [pytest.mark.measuring]  # the baselines of larger matrices have no code of their own


@pytest.fixture
def no_gpu(monkeypatch):
    """Device functions are typed for the GPU that is there: here, for one that is not."""
    dispatcher = pytest.importorskip("numba.cuda.dispatcher")
    standing_in = SimpleNamespace(compute_capability=(8, 0))
    monkeypatch.setattr(dispatcher, "get_current_device", lambda: standing_in)


@pytest.mark.ptxas
@pytest.mark.usefixtures("no_gpu")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("m", "where"),
    [
        pytest.param(m, where, marks=[] if m == 16 or where == "registers" else further)
        for m in SIZES
        for where in WHERE
    ],
)
def test_compiles_with_everything_in_registers(name, m, where):
    build, data, *_ = cases(m, np.random.default_rng(0))[name]
    kind = str(data.dtype)
    arguments = (("uint32", 3), (kind, 2), ("int64", 0), ("int64", 0), ("float32", 3))
    text = compiled(build(where), *arguments)
    assert ".local" not in text
    # The loop over rows of tiles stays one.
    assert text.count("mma.sync") == (m // 16) * (m // 8)
    assert (".shared" in text) == (where != "registers")
    assert ("st.shared.v4" in text) == (where == "shared")

"""Products on the simulated GPU: scaled line by line, in stacks, in panels; the emulator's bits."""

import numpy as np
import pytest

from gemmlab import Tiling, cuda, kernels, simulate
from gemmlab.compiled.sass.compiling import _cubin
from gemmlab.here.compilers import NUMBA, lacking
from gemmlab.kernels.batched import around, scaling, tcec_batched
from gemmlab.kernels.batched.scaling import GUESS
from gemmlab.kernels.kernel import on_device
from gemmlab.kernels.tensor_core.warp_specialised import compile_options
from gemmlab.multiplication import products
from gemmlab.multiplication.arrays import Stack, seen
from gemmlab.multiplication.choosing import Choice, length_of, steps
from gemmlab.multiplication.machines import Simulated
from gemmlab.multiplication.products import multiply, workspace_bytes
from gemmlab.numerics import Policy, backward_error, emulated_matmul, fma_chain_bound
from gemmlab.numerics.fma import fma_chain
from gemmlab.problem import LAYOUTS
from tests.support.noting import Noting

TILINGS = {
    "tcec_batched": Tiling((128, 64, 64), stages=2),
    "tcec_registers": Tiling((64, 64, 32), (8, 8), 3, (64, 32)),
    "pipelined": kernels.pipelined.tilings[-1],
}
KERNELS = pytest.mark.parametrize("kernel", TILINGS)
EVERY = TILINGS["tcec_batched"].block[2] // 16  # instructions between two sums in FP32


def product(kernel, a, b, layout="nn", panels=None, machine=None, parts=1, count=3):
    """A·B of stacks, stored as `layout` says, on the simulated GPU."""
    a, b = (
        x if way == "n" else np.ascontiguousarray(x.swapaxes(1, 2)).swapaxes(1, 2)
        for x, way in zip((a, b), layout, strict=True)
    )
    (batch, m, k), n = a.shape, b.shape[2]
    choice = Choice(
        kernel,
        "",
        TILINGS[kernel],
        batch,
        m,
        n,
        k,
        layout,
        panels or (batch, m, n),
        parts=parts,
        products=count,
    )
    c = np.full((batch, m, n), np.nan, np.float32)
    multiply(machine or Simulated(), choice, *(Stack.of(*seen(x)) for x in (a, b, c)))
    return c


def integers(*shape):
    return np.random.default_rng(len(shape)).integers(-2, 3, shape).astype(np.float32)


def normal(*shape):
    return np.random.default_rng(7).standard_normal(shape, np.float32)


def powers(low, high, *shape):
    exponents = np.random.default_rng(3).integers(low, high, shape)
    return np.ldexp(np.float32(1), exponents.astype(np.int32))


LAYOUTS_OF = {"tcec_batched": LAYOUTS, "tcec_registers": ("nn", "tt"), "pipelined": ("tn",)}


@pytest.mark.parametrize(("kernel", "layout"), [(k, x) for k in LAYOUTS_OF for x in LAYOUTS_OF[k]])
def test_stacks_of_ragged_matrices_are_exact_on_integers(kernel, layout):
    """Rows that a tile has beyond its matrix are those of the next one."""
    a, b = integers(2, 35, 37), integers(2, 37, 33)
    assert np.array_equal(product(kernel, a, b, layout), a @ b)


@pytest.mark.parametrize(("layout", "k"), [("nn", 128), ("tt", 72)])
def test_the_bits_are_those_of_the_emulator(layout, k):
    a, b = normal(1, 32, k), normal(1, k, 40)
    scale = np.float32(2.0**GUESS)
    expected = emulated_matmul(a[0] * scale, b[0] * scale, Policy(every=EVERY)) / scale**2
    assert np.array_equal(product("tcec_batched", a, b, layout)[0], expected)


def test_long_sums_are_sums_of_parts_to_the_bit(monkeypatch):
    """A part is summed in chunks, one after the other; parts are added in their order."""
    chunk, parts, k = 64, 2, 200
    monkeypatch.setattr(tcec_batched, "CHUNK", chunk)
    a, b, scale = normal(1, 16, k), normal(1, k, 24), np.float32(2.0**GUESS)
    expected = np.float32(0)
    for begin, end in steps(k, length_of(k, parts)):
        total = np.float32(0)
        for p in range(begin, end, chunk):
            some = slice(p, min(end, p + chunk))
            x, y = a[0, :, some] * scale, b[0, some] * scale
            total = total + emulated_matmul(x, y, Policy(every=EVERY))
        expected = expected + total
    c = product("tcec_batched", a, b, "nt", parts=parts)
    assert np.array_equal(c[0], expected / scale**2)


@pytest.mark.parametrize("count", [1, 2])
def test_fewer_products_have_the_bits_of_the_emulator(count):
    """And errors below what is said beforehand: B, or both, as FP16 has them."""
    a, b = normal(1, 32, 100), normal(1, 100, 40)
    c = product("tcec_batched", a, b, "nt", count=count)[0]
    scale = np.float32(2.0**GUESS)
    x, y = a[0] * scale, b[0] * scale
    if count == 2:  # without a low half of B, the third product adds zeros
        expected = emulated_matmul(x, y.astype(np.float16).astype(np.float32), Policy(every=EVERY))
    else:
        expected = emulated_matmul(x, y, Policy(products=1, every=EVERY))
    assert np.array_equal(c, expected / scale**2)
    exact = a[0].astype(float) @ b[0].astype(float)
    represented = 2.0**-11 * (3 - count) + 2.0**-21
    assert backward_error(c, exact, a[0], b[0]) <= represented + fma_chain_bound(100)
    assert backward_error(c, exact, a[0], b[0]) > represented / 100


def test_parts_of_k_have_no_element_of_others():
    """Also where the last part is shorter, and n is no multiple of four."""
    a, b = integers(2, 20, 70), integers(2, 70, 33)
    assert np.array_equal(product("tcec_batched", a, b, "tn", parts=2), a @ b)


def test_fp32_units_sum_long_k_in_parts(monkeypatch):
    monkeypatch.setattr(products, "CHAIN", 32)
    a, b = normal(1, 20, 70), normal(1, 70, 24)
    c = product("pipelined", a, b, "tn")
    expected = np.float32(0)
    for begin, end in steps(70, 32):
        expected = fma_chain(a[0][:, None, begin:end], b[0].T[None, :, begin:end]) + expected
    assert np.array_equal(c[0], expected)


@KERNELS
def test_lines_of_any_exponent_have_the_errors_of_fp32(kernel):
    a, b = normal(1, 40, 33) * powers(-46, 60, 1, 40, 1), normal(1, 33, 36)
    b *= powers(-46, 60, 1, 1, 36)
    a[0, 3], b[0, :, 5] = 0, 0
    for layout in ("nn", "tt") if kernel == "tcec_batched" else ("nt",):
        c, exact = product(kernel, a, b, layout)[0], a[0].astype(float) @ b[0].astype(float)
        assert backward_error(c, exact, a[0], b[0]) <= fma_chain_bound(33)


@KERNELS
def test_what_is_not_finite_stays_in_its_lines(kernel):
    """And gives what FP32 gives; so do lines beyond every scale."""
    a, b = normal(2, 20, 9), normal(2, 9, 140)
    a[0, 3, 5], a[1, 7, 0], b[0, 2, 8] = np.nan, np.inf, -np.inf
    a[0, 9] *= np.float32(2.0**100)
    b[1, :, 4] *= np.float32(2.0**-100)
    b[1, :, 5], b[1, 4, 137] = 0, np.inf
    with np.errstate(invalid="ignore"):
        expected = (a.astype(float) @ b.astype(float)).astype(np.float32)
    for layout in ("nn", "tt") if kernel == "tcec_batched" else ("tn",):
        c = product(kernel, a, b, layout)
        finite = np.isfinite(expected)
        assert np.array_equal(c[~finite], expected[~finite], equal_nan=True)
        others = np.arange(20) != 7
        scale = abs(a[1, others]).astype(float) @ abs(b[1, :, :130])
        wrong = abs(c[1, others, :130] - expected[1, others, :130].astype(float))
        assert (wrong <= 1e-6 * scale).all()
        assert np.allclose(c[0, 9, :8], expected[0, 9, :8], rtol=1e-5, atol=2.0**80)


def without(launched):
    """A machine that leaves out the launches of a kernel."""

    class Lacking(Simulated):
        def launch(self, step, *arguments):
            if step.build is not launched:
                super().launch(step, *arguments)

        def zeros(self, shape, dtype):
            return np.zeros(shape, dtype)

        def empty(self, shape, dtype):
            guessed = shape[0] == 1 and dtype == "float32"  # `back`, as it mostly is
            return np.full(shape, 2.0**-GUESS if guessed else 0, dtype)

    return Lacking()


@pytest.mark.parametrize(
    "launch", [scaling.build_again, around.build_lone], ids=lambda f: f.__name__
)
def test_every_launch_is_needed(launch):
    a, b = normal(1, 20, 9), normal(1, 9, 20)
    assert np.isfinite(product("tcec_batched", a, b, machine=without(launch))).all()
    a[0, 3] *= np.float32(2.0**20 if launch is scaling.build_again else 2.0**100)
    c = product("tcec_batched", a, b, machine=without(launch))[0, 3]
    assert not np.allclose(c, a[0, 3] @ b[0], rtol=1e-3)


def test_k_is_filled_with_zeros(monkeypatch):
    """Else rows of the next matrix would be summed."""
    a, b = integers(2, 35, 71), integers(2, 71, 33)
    monkeypatch.setitem(
        products.SHAPES, "tcec_batched", lambda rows, columns, along: (rows, -(-columns // 8) * 8)
    )
    assert not np.array_equal(product("tcec_batched", a, b, "tn"), a @ b)


# ---------------------------------------------------------------------------------------- panels


@pytest.mark.parametrize("kernel", ["tcec_batched", "tcec_registers"])
@pytest.mark.parametrize("panels", [(2, 130, 30), (1, 128, 30), (1, 128, 20)])
def test_panels_take_the_memory_that_is_told(kernel, panels):
    choice = Choice(kernel, "", TILINGS[kernel], 2, 130, 30, 21, "tn", panels)
    noting = Noting()
    multiply(noting, choice, *(Stack(i, 0, shape, strides) for i, (shape, strides) in enumerate((
        ((2, 130, 21), (130 * 21 * 4, 4, 130 * 4)), ((2, 21, 30), (21 * 30 * 4, 30 * 4, 4)),
        ((2, 130, 30), (130 * 30 * 4, 30 * 4, 4))
    ))))  # fmt: skip
    assert noting.size == workspace_bytes(kernel, "tn", 21, 1, 3, *panels)
    if kernel == "tcec_batched":
        long = Choice(kernel, "", TILINGS[kernel], 1, 130, 30, 300, "nn", (1, 130, 30), parts=3)
        noting = Noting()
        multiply(noting, long, *(Stack(i, 0, (1, *shape), (0, 4 * shape[1], 4)) for i, shape in
                                 enumerate(((130, 300), (300, 30), (130, 30)))))  # fmt: skip
        assert noting.size == workspace_bytes(kernel, "nn", 300, 3, 3, 1, 130, 30)


def test_panels_have_the_same_bits():
    a, b = normal(2, 130, 20), normal(2, 20, 30)
    whole, panels = (product("tcec_batched", a, b, "nn", each) for each in (None, (1, 128, 128)))
    assert np.array_equal(panels, whole)


# ---------------------------------------------------------------------------------------- scales


@pytest.mark.parametrize("along", [True, False])
def test_scaled_parts_represent_what_they_promise(along):
    """Every element by 2^-22 of itself or 2^-39 of the largest one of its line."""
    rng, rows, columns = np.random.default_rng(5), 70, 1032
    x = rng.standard_normal((2, rows, columns), np.float32) * powers(-30, 8, 2, rows, columns)
    x *= powers(-15, 60, 2, rows, 1) if along else powers(-15, 60, 2, 1, columns)
    high, low = (np.full((2 * 128, columns), np.nan, np.float16) for _ in range(2))
    found = np.zeros((2, rows if along else columns), np.int32)
    back = np.full(found.shape, np.nan, np.float32)
    first_size, again_size = (scaling.launch((128, columns), 2, rows) for rows in (64, 32))
    builds = scaling.build_first, scaling.build_again
    first, again = (build(along, True, scaling.parts) for build in builds)
    simulate(first, *first_size, x, found, (high, low))
    simulate(again, *again_size, x, found, back, (high, low))
    value = (high.astype(float) + low.astype(float) / 2**11).reshape(2, 128, columns)
    assert not value[:, rows:].any()
    undone = np.expand_dims(back.astype(float), 2 if along else 1)
    wrong = abs(value[:, :rows] * undone - x)
    largest = abs(x).max(axis=2 if along else 1, keepdims=True)
    assert (wrong <= np.maximum(2.0**-22 * abs(x), 2.0**-39 * largest)).all()
    assert (abs(np.log2(back)) % 1 == 0).all()


@pytest.mark.parametrize(
    ("largest", "scale"),
    [
        (0.0, 2.0**8),
        (2.0**-5, 2.0**8),
        (np.nextafter(np.float32(2.0**-5), np.float32(0)), 2.0**20),
        (np.nextafter(np.float32(2.0**7), np.float32(0)), 2.0**8),
        (2.0**7, 2.0**7),
        (2.0**-48, 2.0**62),
        (np.nextafter(np.float32(2.0**-48), np.float32(0)), 0),
        (np.nextafter(np.float32(2.0**77), np.float32(0)), 2.0**-62),
        (2.0**77, 0),
        (1e-45, 0),
        (np.inf, 0),
        (np.nan, 0),
    ],
)
def test_the_scale_of_a_line(largest, scale):
    @on_device
    def told(x):
        return scaling.magnitude(x)

    def ask(x, found, out):
        if cuda.grid(1) == 0:
            scaling.note(found, 0, 0, told(x[0]))
            out[0] = scaling.scale_of(found[0, 0])

    out = np.full(1, np.nan, np.float32)
    simulate(ask, 1, 32, np.array([largest], np.float32), np.zeros((1, 1), np.int32), out)
    assert out[0] == scale


# ------------------------------------------------------------------------------------ compiled


@pytest.mark.ptxas
@pytest.mark.measuring
@pytest.mark.numba_cuda
@pytest.mark.skipif(bool(lacking()), reason=lacking() or "")
def test_the_kernels_of_hopper_compile_without_spills():
    from numba.cuda import types

    def array(dtype, dimensions, layout="C"):
        return types.Array(dtype, dimensions, layout)

    tiling, out = kernels.tcec_split.default, types.UniTuple(array(types.float16, 2), 2)
    back, maps, whole = array(types.float32, 2), [array(types.uint8, 1)] * 4, [types.int64] * 2
    launched = {
        scaling.build_first(False, True, scaling.parts): (
            (array(types.float32, 3, "A"), array(types.int32, 2), out),
            {"launch_bounds": scaling.THREADS},
        ),
        tcec_batched.build(tiling, "nn", True): (
            (array(types.float32, 3), *[types.int64] * 3, *maps, *whole, back, back),
            compile_options(tiling),
        ),
    }
    for kernel, (signature, options) in launched.items():
        _, taken = _cubin(kernel, signature, "sm_90", None, NUMBA, tuple(options.items()))
        # Of *tcec_batched*, what a unit keeps while it multiplies: once in thousands of cycles.
        assert taken.local_bytes <= (24 if kernel.__name__ == "tcec_batched" else 0)

"""The loop of *tcec_registers* for every policy: the emulator's bits, counts, and refusals."""

import numpy as np
import pytest

from gemmlab import Gemm, Tiling, kernels
from gemmlab.compiled.forecast.rung_listings import compiled_rung
from gemmlab.here.compilers import lacking
from gemmlab.kernels.hashing import source_hash
from gemmlab.kernels.tcec import tcec_registers
from gemmlab.kernels.tcec.policies import BY_NAME, KERNELS, tcec_of
from gemmlab.kernels.tcec.shared import policy_products as products
from gemmlab.kernels.tcec.shared.splitting import round_one, split_unscaled
from gemmlab.measure.backends import gpu
from gemmlab.measure.backends.simulator import launches
from gemmlab.numerics import POLICIES, Policy, emulated_matmul
from gemmlab.problem import LAYOUTS, Operands
from tests.support.changed import put

SMALL = Tiling((64, 64, 32), (8, 8), 3, (64, 32))
OTHER = Tiling((128, 64, 32), (4, 8), 2, (32, 32))
EACH = pytest.mark.parametrize("name", KERNELS)


def drawn(problem):
    """Normal numbers, and A and B as they are multiplied."""
    rng = np.random.default_rng(problem.k)
    a, b, c = (rng.standard_normal(shape).astype(np.float32) for shape in problem.shapes)
    operands = Operands(a, b, c)
    return operands, *(x.astype(np.float32) for x in problem.values(operands)[:2])


def test_sources_of_all_have_a_hash():
    for kernel in KERNELS.values():
        assert len(source_hash(kernel)) == 64


def bits(x):
    return x.view(np.uint32)


def simulated(kernel, problem, operands, tiling):
    """C and the counters on the simulated GPU."""
    (alpha, beta), c = problem.scalars(), problem.poisoned(operands.c)
    found = launches(kernel, problem, tiling, (alpha, operands.a, operands.b, beta, c))
    return c, {name: n for name, n in found.items() if n}


def check(name, problem, tiling):
    """The emulator's bits, and as many transactions as predicted."""
    kernel, (operands, a, b) = KERNELS[name], drawn(problem)
    c, counted = simulated(kernel, problem, operands, tiling)
    assert np.array_equal(bits(c), bits(emulated_matmul(a, b, BY_NAME[name])))
    work, policy = kernel.work(problem, tiling), BY_NAME[name]
    assert work.flops == {policy.mma.dtype: policy.products * tiling.padded_flops(problem)}
    predicted = work.counters
    assert counted == {counter: n for counter, n in predicted.items() if n}
    assert predicted["shared_bank_conflicts"] == 0


@EACH
def test_the_bits_of_the_emulator(name):
    """In more steps than there are stages; one policy in the larger tiles of a warp."""
    check(name, Gemm(128, 128, 96), SMALL if name == "tcec_tf32" else OTHER)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_any_shape_and_layout(layout):
    """Of runs of two; those of four are *tcec_registers*' own."""
    check("tcec_tf32", Gemm(67, 30, 45, layout=layout), OTHER)


def test_no_two_policies_have_the_same_bits():
    """So that a kernel with another's bits is seen; and all of `POLICIES` have a kernel."""
    _, a, b = drawn(Gemm(64, 64, 128))
    seen = {bits(emulated_matmul(a, b, policy)).tobytes() for policy in BY_NAME.values()}
    assert len(seen) == len(BY_NAME) == len(KERNELS) + 2  # "simt", and tcec_registers itself
    assert POLICIES.keys() - KERNELS == {"simt", "tcec_fp16"}
    assert BY_NAME["tcec_fp16"] == tcec_registers.CORRECTED
    assert all(kernels.get(k.name) is k for k in kernels.POLICIES)


# What is wrong -> the policy, the name in `products`, and by what it is replaced.
MUTANTS = {
    "TF32 not corrected": ("tcec_tf32", "split_one", round_one),
    "low parts as they are": ("tcec_fp16_inside", "split_two", split_unscaled),
    "ZEROS forgotten": ("fp16_outside", "ZEROS", (np.float32(1),) * 4),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_what_is_wrong_is_seen(monkeypatch, mutant):
    name, what, wrong = MUTANTS[mutant]
    put(monkeypatch, products, what, wrong)
    operands, a, b = drawn(Gemm(64, 64, 64))
    c, _ = simulated(KERNELS[name], Gemm(64, 64, 64), operands, SMALL)
    assert not np.array_equal(c, emulated_matmul(a, b, BY_NAME[name]))


def test_tf32_keeps_what_is_out_of_range_of_float16():
    problem = Gemm(64, 64, 32)
    (a, b, c), *_ = drawn(problem)
    operands = Operands(a * np.float32(2.0**-30), b * np.float32(2.0**20), c)
    exact = operands.a.astype(float) @ operands.b
    found, _ = simulated(KERNELS["tcec_tf32"], problem, operands, SMALL)
    assert np.abs(found - exact).max() < 1e-6 * np.abs(exact).max()


@pytest.mark.parametrize(
    ("policy", "told"),
    [
        (Policy("simt", products=1), "use one of m16n8k16.f32.f16, m16n8k8.f32.tf32"),
        (Policy(scale=2.0**12), "scale=4096 with m16n8k16.f32.f16: use 1 or 2048"),
        (Policy("m16n8k8.f32.tf32"), "scale=2048 with m16n8k8.f32.tf32: use 1"),
        (Policy(every=4), "every=4: use 1"),
        (Policy(products=4), "products=4 needs one sum"),
    ],
)
def test_other_policies_are_refused(policy, told):
    with pytest.raises(ValueError, match=told):
        tcec_of(policy, "other", "an idea")


@pytest.mark.ptxas
@pytest.mark.skipif(bool(lacking()), reason=lacking() or "")
def test_the_largest_lives_in_registers():
    kernel = KERNELS["tcec_tf32"]
    code = compiled_rung(kernel, Gemm(64, 64, 64), kernel.default, (9, 0))
    assert code.local_bytes == 0
    assert [i.name for i in code.instructions].count("HMMA") % (3 * 2 * 4) == 0


@pytest.mark.gpu
@EACH
def test_a_gpu_has_the_bits_of_the_emulator(name):
    kernel, problem = KERNELS[name], Gemm(128, 128, 128)
    operands, a, b = drawn(problem)
    runner = gpu.Runner(kernel, problem, kernel.default, gpu.Matrices(problem))
    found = runner.compute(problem, operands)
    assert np.array_equal(bits(found), bits(emulated_matmul(a, b, BY_NAME[name])))

"""Kernels for other policies than TCEC's own: the loop of *tcec_registers*, made for each.

`tcec_of` makes one of a `Policy`. Those that a class compares are in `KERNELS`, by the names of
`numerics.POLICIES` and their neighbours: one product or three, FP16 or TF32, main products summed
outside of the Tensor Core, to nearest, or inside, toward zero. The policy "simt" has a kernel
already, *pipelined*, and "tcec_fp16" is *tcec_registers* itself.
"""

from collections.abc import Mapping
from dataclasses import replace

from gemmlab import Gemm, Tiling
from gemmlab.kernels.kernel import Kernel
from gemmlab.kernels.tcec.shared.product_sums import variant as variant_of
from gemmlab.kernels.tcec.shared.splitting import SCALE
from gemmlab.kernels.tcec.tcec_registers import DEFAULT, tcec_registers, work as work_of
from gemmlab.model import traffic
from gemmlab.numerics import POLICIES, Policy

# The instructions that the loop has, and the scales that a split into their format can have.
SCALES = {"m16n8k16.f32.f16": (1.0, float(SCALE)), "m16n8k8.f32.tf32": (1.0,)}

# With runs of two a lane keeps more addresses: beside two sums of 64 there are too few registers.
NARROW = Tiling(block=(64, 128, 32), warp=(32, 32), thread=(4, 8), stages=4)


def check(policy: Policy) -> None:
    """Raise ValueError for a policy that the loop does not have."""
    if policy.instruction not in SCALES:
        raise ValueError(f"instruction={policy.instruction!r}: use one of {', '.join(SCALES)}")
    if policy.products > 1 and policy.scale not in SCALES[policy.instruction]:
        known = " or ".join(f"{scale:g}" for scale in SCALES[policy.instruction])
        raise ValueError(f"scale={policy.scale:g} with {policy.instruction}: use {known}")
    if policy.every != 1:
        raise ValueError(f"every={policy.every}: use 1; tcec_split has other intervals")
    if policy.products == 4 and not policy.one_sum:
        raise ValueError(f"products=4 needs one sum, scale=1 and outside=False, not {policy}")


def tcec_of(policy: Policy, name: str, idea: str) -> Kernel:
    """The kernel that computes as `policy` says; ValueError for one that the loop does not have."""
    check(policy)
    two_sums = policy.products > 1 and not policy.one_sum
    tiling = NARROW if policy.mma.dtype == "tf32" and two_sums else DEFAULT

    def variant(problem: Gemm, capability: tuple[int, int] | None) -> Mapping[str, object]:
        return {**variant_of(problem, capability), "policy": policy}

    def work(problem: Gemm, tiling: Tiling) -> traffic.Work:
        return work_of(problem, tiling, policy)

    return replace(tcec_registers, name=name, idea=idea, default=tiling, variant=variant, work=work)


IDEAS = {
    "fp16": "operands rounded to FP16, summed inside",
    "tf32": "operands rounded to TF32, summed inside",
    "fp16_outside": "operands rounded to FP16, summed outside",
    "tf32_outside": "operands rounded to TF32, summed outside",
    "markidis": "two parts in FP16, four products in one sum inside",
    "tcec_fp16_inside": "two parts in FP16, corrected, summed inside",
    "tcec_tf32_inside": "two parts in TF32, three products in one sum inside",
    "tcec_tf32": "two parts in TF32, corrected, summed outside",
}
BY_NAME = POLICIES | {
    f"{name}_{'inside' if policy.outside else 'outside'}": replace(
        policy, outside=not policy.outside
    )
    for name, policy in POLICIES.items()
    if policy.mma and policy.products < 4
}
KERNELS = {name: tcec_of(BY_NAME[name], f"policy_{name}", idea) for name, idea in IDEAS.items()}

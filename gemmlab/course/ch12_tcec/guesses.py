"""Answers to the questions of chapter 12, FP32 from Tensor Cores."""

from dataclasses import replace
from functools import cache

import numpy as np

from gemmlab import kernels
from gemmlab.course.guesses import Answer
from gemmlab.device import device
from gemmlab.measure.benchmarks import tcec_errors
from gemmlab.numerics import (
    FORMATS,
    POLICIES,
    Policy,
    emulated_matmul,
    forward_error,
    split_range,
)
from gemmlab.problem import Gemm

_H200 = device("h200")
_HALF = FORMATS["float16"]
_SIDE = 8  # of C, of the products that are emulated


@cache
def _error(policy: Policy, k: int, positive: bool = False, seed: int = 0) -> float:
    """The error by norm of A·B, 8×k by k×8, normal numbers or their magnitudes."""
    rng = np.random.default_rng(seed)
    a, b = rng.standard_normal((_SIDE, k)), rng.standard_normal((k, _SIDE))
    if positive:
        a, b = np.abs(a), np.abs(b)
    a, b = a.astype(np.float32), b.astype(np.float32)
    return forward_error(emulated_matmul(a, b, policy), a.astype(np.float64) @ b)


def limit() -> Answer:
    """Three FP16 products on an H200: at most how many times as fast as the FP32 units?"""
    half, single = _H200.peak_of("float16"), _H200.peak_of("float32")
    return Answer(
        round(half / 3 / single, 1),
        f"{half / 1e12:.0f} TFLOP/s ÷ 3 ÷ {single / 1e12:.0f} TFLOP/s.",
        {
            round(half / single, 1): "That is one product. Each of yours takes three.",
            round(half / 4 / single, 1): "That is with four products.",
            round(half / 2 / single, 1): "Two numbers for one make more than two products.",
        },
        within=0.03,
    )


def rounded() -> Answer:
    """Operands rounded to FP16, k = 1024: how many times the error of FP32 units?"""
    times = _error(POLICIES["fp16"], 1024) / _error(POLICIES["simt"], 1024)
    return Answer(
        times,
        "An operand keeps 11 bits of 24. That alone would be a factor of 2^13 = 8192, but FP32 "
        "units round a thousand times, and their errors add up.",
        {
            2**13: "That compares one rounding with one. FP32 units round at each of 1024 sums.",
            2: "An operand has half the bits, and that is not half the accuracy.",
            1: "The sums are FP32, but the operands are not.",
        },
        within=0.3,
    )


def naive() -> Answer:
    """Two parts and four products, positive numbers, k = 1024: times the error of FP32 units?"""
    times = _error(POLICIES["markidis"], 1024, True) / _error(POLICIES["simt"], 1024, True)
    return Answer(
        times,
        "All bits of the operands are there now. What is left is the sum: inside the Tensor Core "
        "it is rounded toward zero, at each of 256 instructions.",
        {
            1: "The operands are right now, to 22 bits. Are the sums?",
            0.5: "The operands are right now, to 22 bits. Are the sums?",
            4: "Two bits are missing of 24. But that is not the largest error.",
        },
        within=0.3,
    )


def inside() -> Answer:
    """Corrected, but main products summed inside, positive, k = 1024: times the error of TCEC?"""
    summed_inside, corrected = replace(Policy(), outside=False), POLICIES["tcec_fp16"]
    times = _error(summed_inside, 1024, True) / _error(corrected, 1024, True)
    return Answer(
        times,
        "The operands are as right as before. Each of 64 instructions cuts the sum, and all cuts "
        "have one sign. (With numbers of either sign sums come and go, and a part of the cuts "
        f"cancels: {_error(summed_inside, 1024) / _error(corrected, 1024):.0f} times.)",
        {
            1: "The corrections are right. But what do they correct?",
            2: "An instruction cuts once. How many are there, and of which sign is a cut?",
            round(_error(POLICIES["markidis"], 1024, True) / _error(corrected, 1024, True)): (
                "That is the naive split, with four products in one sum: more cuts for each step."
            ),
        },
        within=0.3,
    )


def lowest() -> Answer:
    """low·low is at most 2^-e of high·high: which e?"""
    bits = 2 * _HALF.precision
    return Answer(
        bits,
        "Rounding to nearest leaves at most half a gap, $2^{-11}$ of the number, and here two of "
        "them are multiplied.",
        {
            _HALF.precision: "That is one low part. Here two of them are multiplied.",
            2 * _HALF.fraction_bits: "A gap is 2^-10; rounding to nearest leaves half of one.",
            24: "That is FP32. low·low is a little larger, and four times less than what is seen.",
        },
        exponent=True,
    )


def flush() -> Answer:
    """Which of 1, 2, 4, …, 64 instructions between two sums outside has the least error?"""
    errors = {n: _error(Policy(every=n), 4096) for n in (1, 2, 4, 8, 16, 32, 64)}
    best = min(errors, key=errors.get)
    measured = min(tcec_errors(_H200.name).flush, key=lambda row: row.measured)
    return Answer(
        best,
        "Each addition outside rounds, too. Fewer of them are better, until the bias inside "
        f"outweighs that. Once in 64 the error is {errors[64] / errors[best]:.1f} times as large.",
        {
            measured.interval // 16: "That is the best for positive numbers, all of whose cuts "
            "have one sign. With either sign a part of them cancels.",
            1: "Then FP32 units round 256 times, to nearest: no bias, but an error each time.",
            64: "Inside, all errors have one sign, and grow like the number of instructions.",
        },
    )


def tiny() -> Answer:
    """Down to which power of two do both parts keep 22 bits, without a factor?"""
    least, _ = split_range("float16", scale=1.0)
    return Answer(
        float(np.log2(least)),
        f"The low part of {least:g} is about 2^-14, the smallest normal float16. Below, it is "
        "subnormal, and loses bits.",
        {
            _HALF.emin: "There the *high* part becomes subnormal. The low one is 2^11 smaller.",
            -24: "That is the smallest float16 at all. It has one bit.",
            0: "There is some room: 1 has a low part of up to 2^-11.",
            -np.log2(least): "The sign: numbers below 1 have negative exponents.",
        },
        exponent=True,
    )


def footprint() -> Answer:
    """Wavefronts of shared memory in a step: tcec_stored over tcec_registers."""
    stored, registers = map(_wavefronts, (kernels.tcec_stored, kernels.tcec_registers))
    return Answer(
        stored / registers,
        "Two parts of 2 bytes are as many bytes as one FP32 number, and *tcec_stored* splits on "
        "the way from global memory: no FP32 tile ever lies in its shared memory.",
        {
            3: "That is where FP32 tiles lie in shared memory first. *tcec_stored* splits before.",
            2: "There are two parts, but each has half of the bytes.",
            1.5: "Nothing is stored twice: the parts take the place of the FP32 tile.",
        },
        within=0.02,
    )


def _wavefronts(kernel: kernels.Kernel) -> int:
    """Loads and stores of shared memory in 64 steps of a block, predicted."""
    (bm, bn, bk), seen = kernel.default.block, []
    for steps in (64, 128):
        counters = kernel.work(Gemm(bm, bn, steps * bk), kernel.default).counters
        seen.append(counters["shared_load_wavefronts"] + counters["shared_store_wavefronts"])
    return seen[1] - seen[0]


def memory() -> Answer:
    """What the parts of A and B take in global memory, n = 8192 [MB]."""
    operands = sum(Gemm(8192, 8192, 8192).array_bytes[:2]) / 1e6
    return Answer(
        round(operands),
        "Two parts of 2 bytes for each element of 4: as many bytes as A and B have.",
        {
            round(operands / 2): "That is one part, or one operand.",
            round(2 * operands): "A part has 2 bytes, not 4.",
            0: "`wgmma` reads shared memory, and the TMA copies what lies in global memory.",
        },
        within=0.03,
    )

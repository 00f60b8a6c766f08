"""Answers to the questions of chapter 14, the capstone."""

from gemmlab import device
from gemmlab.course.guesses import Answer
from gemmlab.course.worklog import SHAPES

_H200 = device("h200")
_SKINNY = SHAPES["skinny"]
_SIDE = 128  # of a block tile


def bound() -> Answer:
    """8192×128×8192 on an H200: how many µs does no FP32 kernel beat?"""
    fmas = 1e6 * _SKINNY.problem.flops / _H200.peak_of("float32")
    memory = 1e6 * _SKINNY.bytes / _H200.dram_bandwidth
    return Answer(
        round(fmas),
        f"The FMAs take {fmas:.0f} µs at the peak, and A, B and C move in {memory:.0f} µs "
        "meanwhile. So no kernel needs to wait for memory, if it loads each element once.",
        {
            round(memory): "That is what moving A, B and C takes. The FMAs take longer.",
            round(fmas + memory): "You added both. They can go on at the same time.",
            round(fmas / 2): "You counted an FMA as one operation. It is two.",
        },
        within=0.05,
    )


def busy() -> Answer:
    """8192×128 in tiles of 128×128: what percentage of an H200's SMs has a block?"""
    problem = _SKINNY.problem
    blocks = problem.m // _SIDE * (problem.n // _SIDE)
    return Answer(
        round(100 * blocks / _H200.sms, 1),
        f"{blocks} blocks on {_H200.sms} SMs. The tile that is best for a large square leaves "
        "every other SM idle here.",
        {
            100: "That needs as many blocks as SMs, at least.",
            round(100 * 4 * blocks / _H200.sms, 1): "That is with tiles of 64×64: more than one "
            "block for each SM.",
            round(100 * 2 * blocks / _H200.sms, 1): "That is with tiles of 64×128.",
        },
        within=0.03,
    )


def loop() -> Answer:
    """Chapter 3's kernel with `range`: which percentage of the slots is the loop's own line?"""
    return Answer(
        37,
        "The sum's line takes 62%, and only 3% of all slots are its FMAs: the rest are addresses "
        "and the loop's counter, in integers of 64 bits.",
        {
            3: "That is what the FMAs take. The counter is no FMA, and it is wide.",
            50: "That would be as much as the sum with its loads and addresses. It comes near.",
        },
        within=0.15,
    )

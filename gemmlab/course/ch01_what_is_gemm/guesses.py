"""Answers to the questions of chapter 01, what GEMM is."""

from gemmlab import kernels
from gemmlab.course.guesses import Answer
from gemmlab.device import RECORDED, device
from gemmlab.measure.backends import run
from gemmlab.problem import Gemm


def work() -> Answer:
    """The factor by which the arithmetic grows when all three sizes double."""
    small, large = Gemm(512, 512, 512), Gemm(1024, 1024, 1024)
    return Answer(
        large.flops / small.flops,
        "There are four times as many elements of $C$, and each is a sum twice as long.",
        {
            2: "That is how one side grows; $C$ has two sides, and the sums are longer, too.",
            4: "That is how the number of elements of $C$ grows; each sum is longer, too.",
            6: "The three doublings multiply; they do not add.",
        },
    )


def bytes() -> Answer:
    """The factor by which the elements of the three matrices grow when all sizes double."""
    small, large = Gemm(512, 512, 512), Gemm(1024, 1024, 1024)
    return Answer(
        large.bytes / small.bytes,
        "Each matrix has two sides, and both double.",
        {
            2: "That is how one side grows; a matrix has two.",
            8: "That is how the arithmetic grows; a matrix has two sides, not three.",
            12: "Three matrices, each four times as large, are four times as much together.",
        },
    )


def gemv() -> Answer:
    """The share of the V100's FP16 peak that a matrix times a vector can reach at most [%]."""
    v100 = device("v100")
    bound = 1  # FLOP/B: 2 FLOP for each element of A, of two bytes
    ratio = v100.ops_per_byte("float16")
    return Answer(
        100 * bound / ratio,
        f"Each element of $A$ costs 2 bytes and gives one FMA: less than {bound} FLOP/B. The V100 "
        f"asks for {ratio:.1f}.",
        {
            100: "That takes enough arithmetic for each byte; here each element of $A$ is used "
            "once.",
            50: "Two operations for each element do not mean half of the peak; compare FLOP/B.",
            1: "That is the intensity in FLOP/B; divide it by what the device asks for.",
        },
        within=0.05,
    )


def loads() -> Answer:
    """How many times more the three loops load than A and B hold, for 64×64×64."""
    n = 64
    by_loops, once = 2 * n**3, 2 * n**2
    return Answer(
        by_loops / once,
        f"The loops load two elements for each of {n**3:,} FMAs: {by_loops:,}. $A$ and $B$ hold "
        f"{once:,}.",
        {
            2: "That is how many elements each FMA loads; count how often it loads the same one.",
            2 * n: "Each FMA loads two elements, but there are two matrices to load from, too.",
            n * n: "That is for each element of $C$; an element of $A$ is needed in one row of it.",
            1: "Each is needed once for each element of a row or a column of $C$.",
        },
    )


def places() -> Answer:
    """The share of an H200's threads that 64×64 elements of C keep busy, one each [%]."""
    threads = device(RECORDED).threads
    return Answer(
        100 * 64 * 64 / threads,
        f"{64 * 64:,} elements for {threads:,} threads.",
        {
            100: "The sums are long, but one sum is one thread's work here; count the sums.",
            100 * 64 / threads: "You counted one row of $C$; it has 64.",
            100 * 64 * 8192 / threads: "You counted the elements of $A$; a thread computes one of "
            "$C$.",
        },
        within=0.05,
    )


def ragged() -> Answer:
    """How much longer the library takes for 2049 than for 2048, recorded [%]."""
    even, odd = (run(kernels.cublas, Gemm(n, n, n), backend="recorded") for n in (2048, 2049))
    more = 100 * (odd.flops / even.flops - 1)
    return Answer(
        100 * (odd.seconds / even.seconds - 1),
        f"{even.seconds * 1e6:.0f} µs became {odd.seconds * 1e6:.0f} µs.",
        {
            round(more, 2): "That is the additional arithmetic; its time grew far more.",
            round(100 * (2049**2 / 2048**2 - 1), 2): "Those are the additional bytes; time grew "
            "far more.",
            100: "A second round of work for the whole machine would double it; this is less.",
        },
        within=0.1,
    )

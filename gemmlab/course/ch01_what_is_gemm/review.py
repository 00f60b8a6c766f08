"""Review questions of chapter 01, with the sectors and the ladder of the start."""

from random import Random

from gemmlab.course.guesses import Answer
from gemmlab.course.review import Question, mixes
from gemmlab.formats import number_format
from gemmlab.model.transactions import SECTOR
from gemmlab.problem import Gemm


@mixes("00", read="1.2 0.1")
def row_in_sectors(draw: Random) -> Question:
    """Sectors that hold a row of A."""
    k, dtype = 32 * draw.randint(3, 60), draw.choice(("float16", "float64"))
    size = number_format(dtype).bytes
    return Question(
        f"A row of A has k = {k:,} numbers in {dtype}, one behind the other, and begins where a "
        f"sector of {SECTOR} bytes does. How many sectors hold it?",
        Answer(
            k * size // SECTOR,
            f"{k:,} numbers of {size} bytes are {k * size:,} bytes.",
            {
                k * 4 // SECTOR: "That is float32, which has 4 bytes.",
                k // SECTOR: "That would be numbers of one byte.",
                k * size: "Those are bytes.",
            },
        ),
        "sectors",
    )


@mixes("00", read="1.4 0.1")
def moved_by_loops(draw: Random) -> Question:
    """Bytes that lone loads move, over those that A and B have."""
    n = draw.choice((64, 128, 256, 512))
    p = Gemm(n, n, draw.choice((128, 1024, 4096)))
    a, b, _ = p.array_bytes
    moved = p.flops * SECTOR  # two loads for each FMA, which is two operations
    return Question(
        f"Three plain loops multiply {n}×{n}×{p.k} in float32 and load both operands of each "
        f"product anew. Suppose that each load moves a sector of its own, {SECTOR} bytes. How "
        "many times the bytes of A and B are moved?",
        Answer(
            moved / (a + b),
            f"Each element is loaded {n} times, and {SECTOR} bytes move for the 4 that are wanted.",
            {
                n: "So often is each element loaded; of what moves, an eighth is wanted.",
                SECTOR // 4: "That is the waste of one load; each element is loaded many times.",
                moved / (a + b) * 4: "A number of float32 has 4 bytes: 8 fit in a sector.",
                moved / (a + b) / 2: "Each product has two operands, and both are loaded.",
            },
        ),
        "times",
    )


@mixes("00", read="1.3 0.1")
def share_of_peak(draw: Random) -> Question:
    """The share of the peak, from a time."""
    n, peak = draw.choice((1024, 2048, 4096)), 66.9
    share = draw.choice((7, 12, 18, 23, 37, 42, 61, 73, 88))
    milliseconds = float(f"{1e3 * 2 * n**3 / (share / 100 * peak * 1e12):.3g}")
    found = 100 * 2 * n**3 / (milliseconds / 1e3) / (peak * 1e12)
    return Question(
        f"A rung of the ladder multiplies {n}×{n}×{n} in {milliseconds} ms, on a GPU with a peak "
        f"of {peak} TFLOP/s. What percentage of the peak is that?",
        Answer(
            round(found, 1),
            f"$2n^3$ is {2 * n**3 / 1e9:.3g} GFLOP, and in {milliseconds} ms the peak allows "
            f"{peak * milliseconds:.3g} GFLOP.",
            {
                found / 2: "An FMA is two operations: a product and a sum.",
                100 - found: "That is what is lost.",
                1e4 / found: "That is upside down.",
            },
            within=0.03,
        ),
        "%",
    )

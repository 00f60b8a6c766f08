"""Review questions of chapter 06, with loads, warps and waves of chapters 3 to 5."""

from random import Random

from gemmlab.course.guesses import Answer
from gemmlab.course.review import Question, mixes
from gemmlab.device import device
from gemmlab.model.occupancy import resident_blocks
from gemmlab.tiling import WARP


@mixes("04", read="6.2 4.9")
def loads_for_an_fma(draw: Random) -> Question:
    """Shared loads for each FMA of a thread tile."""
    down, across = draw.choice(((2, 4), (4, 8), (8, 4), (8, 16), (2, 8), (6, 3), (5, 10)))
    return Question(
        f"A thread has {down}×{across} sums. For each p it loads {down} words of A and {across} of "
        "B from shared memory. How many loads are that for each FMA, where *tiled* needs 2?",
        Answer(
            (down + across) / (down * across),
            f"{down} + {across} loads serve {down} · {across} FMAs.",
            {
                2 / (down * across): "The tile needs more words than one of each.",
                down * across / (down + across): "That is upside down.",
                1 / down: "Those are the words of B. A has loads of its own.",
                1 / across: "Those are the words of A. B has loads of its own.",
            },
            within=0.01,
        ),
        "loads",
    )


@mixes("03", read="6.4 3.8")
def warps_by_registers(draw: Random) -> Question:
    """Warps of an SM whose threads have many registers."""
    gpu, threads = device("h200"), draw.choice((128, 256))
    registers = draw.choice((64, 72, 96, 128, 168, 200, 248))
    blocks = resident_blocks(gpu, threads, registers=registers)
    return Question(
        f"A block has {threads} threads of {registers} registers. An SM has "
        f"{gpu.registers_per_sm:,} registers and room for {gpu.threads_per_sm:,} threads, and "
        "blocks come whole. How many warps are there to hide a wait?",
        Answer(
            blocks * threads // WARP,
            f"{blocks} blocks fit, of {threads // WARP} warps each.",
            {
                blocks: "Those are blocks.",
                blocks * threads: "Those are threads.",
                gpu.threads_per_sm // WARP: "That is the room for threads; registers end first.",
            },
        ),
        "warps",
    )


@mixes("05", read="6.8 5.3")
def idle_sms(draw: Random) -> Question:
    """SMs without a tile, where C is small."""
    tile, n = draw.choice(((128, 128), (128, 256), (64, 128))), 128 * draw.randint(2, 9)
    sms, tiles = 132, -(-n // tile[0]) * -(-n // tile[1])
    idle = max(0, sms - tiles)
    return Question(
        f"A fast rung has tiles of {tile[0]}×{tile[1]}. On C of {n}×{n}, how many of {sms} SMs "
        "have nothing to do from first to last?",
        Answer(
            idle,
            f"C has {tiles} tiles, and a tile is not shared.",
            {
                tiles: "Those have a tile.",
                0: "A block takes one SM, however much there is to do.",
                max(0, sms - n * n // 64 // 64): "Those are tiles of 64×64.",
            },
        ),
        "SMs",
    )

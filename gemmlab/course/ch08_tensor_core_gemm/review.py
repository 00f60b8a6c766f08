"""Review questions of chapter 08, with tiles, banks and fragments of chapters 4 to 7."""

from random import Random

from gemmlab.course.guesses import Answer
from gemmlab.course.review import Question, mixes
from gemmlab.device import device
from gemmlab.model.occupancy import resident_blocks


@mixes("06", "07", read="8.3 6.2")
def fed_by_warp_tile(draw: Random) -> Question:
    """Wavefronts for each `mma` of a warp tile."""
    down, across = draw.choice(((32, 32), (64, 32), (32, 64), (64, 64), (16, 32), (64, 16)))
    a, b = down // 16, across // 8
    return Question(
        f"A warp computes {down}×{across} of C by `mma.m16n8k16`. A fragment of A takes 4 "
        "wavefronts of shared memory and one of B takes 2, and each is loaded once for all "
        "products that use it. How many wavefronts are that for each `mma`?",
        Answer(
            (4 * a + 2 * b) / (a * b),
            f"For each 16 along k it loads {a} fragments of A and {b} of B, for {a * b} "
            "instructions.",
            {
                6: "So it is if nothing is used twice.",
                6 / (a * b): "It loads more fragments than one of each.",
                4 * a + 2 * b: "Those are the wavefronts of all of them together.",
            },
            within=0.01,
        ),
        "wavefronts",
    )


@mixes("04", "07", read="8.5 4.6")
def swizzled_bank(draw: Random) -> Question:
    """The bank in which a swizzled piece begins."""
    row, piece = draw.randint(1, 30), draw.randint(1, 7)
    return Question(
        "Rows of a tile have 128 bytes, eight pieces of 16, and the first begins in bank 0 of 32. "
        f"The swizzle puts piece p of row r at place p ^ r % 8. In which bank does piece {piece} "
        f"of row {row} begin?",
        Answer(
            4 * (piece ^ row % 8),
            f"{row} % 8 = {row % 8}, {piece} ^ {row % 8} = {piece ^ row % 8}, and a piece fills "
            "four banks.",
            {
                4 * piece: "So it is without the swizzle.",
                piece ^ row % 8: "That is the place; a piece has four words.",
                4 * ((piece + row) % 8): "^ is the exclusive or of the bits, not a sum.",
            },
        ),
        "",
    )


@mixes("04", "06", read="8.3 6.4")
def blocks_by_tiles(draw: Random) -> Question:
    """Blocks of an SM whose tiles lie in shared memory."""
    gpu, kib = device("h200"), 1024
    m, n, k = (draw.choice(sizes) for sizes in ((64, 128, 256), (64, 128), (32, 48, 64)))
    size = 2 * k * (m + n)
    whole, apart = gpu.shared_bytes_per_sm, gpu.shared_bytes_per_sm - gpu.shared_bytes_per_block
    return Question(
        f"A block of 128 threads keeps a tile of A, {m}×{k}, and one of B, {k}×{n}, in float16 in "
        f"shared memory. An SM has {whole // kib} KiB of it, each block costs {apart // kib} KiB "
        f"more than it asks for, and {gpu.threads_per_sm:,} threads find room. How many blocks "
        "does it hold, registers aside?",
        Answer(
            resident_blocks(gpu, 128, size),
            f"A block asks for {size / kib:.0f} KiB.",
            {
                whole // (2 * size + apart): "A number of float16 has 2 bytes.",
                whole // (2 * k * m + apart): "B has a tile, too.",
                whole // (2 * m * n + apart): "C's tile lies in registers.",
            },
        ),
        "blocks",
    )

"""Answers to the questions of chapter 05, tile and wave quantization."""

from gemmlab import Gemm, Tiling, device, kernels
from gemmlab.course.guesses import Answer
from gemmlab.measure import records
from gemmlab.model.alignment import loads_per_16_bytes
from gemmlab.model.in_tiles import in_tiles
from gemmlab.model.quantization import Quantization, quantization
from gemmlab.tiling import WARP

_H200, _A100 = device("h200"), device("a100_80gb")
_M, _K = 1408, 4096  # of the product that grows along n
_LARGE, _SMALL = kernels.pipelined.tilings[0], kernels.pipelined.tilings[-1]


def _cut(m: int, n: int, tile: tuple[int, int], on: object = _H200) -> Quantization:
    return quantization(Gemm(m, n, _K), on, tile, per_sm=1)


def _recorded(n: int, tiling: Tiling) -> float:
    """Recorded rate of *pipelined* at m = n = k [FLOP/s]."""
    return records.find(kernels.pipelined, Gemm(n, n, n), tiling).flops_per_second


def column() -> Answer:
    """256×256 becomes 256×257, in tiles of 128×128: how many times as many operations?"""
    before, now = (_cut(256, n, (128, 128)) for n in (256, 257))
    times = now.executed_flops / before.executed_flops
    return Answer(
        times,
        f"{before.tiles} tiles become {now.tiles}. The two new ones are computed whole, although "
        f"{now.last_column:.1%} of each lies in C.",
        {
            257 / 256: "That is what C needs. A block computes its whole tile.",
            5 / 4: "The new column is as high as C: it needs a tile in each of two rows of tiles.",
            2: "The new tiles form one column of two, beside two columns that were there.",
            1: "The last column has no room in the tiles that are there: 256 is twice 128.",
        },
    )


def rest() -> Answer:
    """C is 16×17, tiles are 16×16: how many of the second block's 8 warps have nothing to do?"""
    tile = 16
    with_work = {(y * tile + x) // WARP for y in range(tile) for x in range(17 - tile)}
    warps = tile * tile // WARP
    return Answer(
        warps - len(with_work),
        f"A warp covers {WARP // tile} rows of the tile, and the one column that is left crosses "
        f"all of them: each warp has {WARP // tile} lanes at work, and the other "
        f"{WARP - WARP // tile} wait.",
        {
            warps - 1: "That would be so with one *row* left. A column crosses every warp.",
            warps: "One column of C is left, and each of its elements has a thread.",
            warps / 2: "Draw the warps as strips of two rows: which of them does column 0 cross?",
        },
    )


def tail() -> Answer:
    """117 tiles on 108 SMs: what percentage of the SMs work in the second wave?"""
    q = _cut(2304, 1544, (256, 128), _A100)
    return Answer(
        round(100 * q.tail_use, 2),
        f"{q.wave} tiles fill the first wave; {q.tail} are left for {q.wave} SMs.",
        {
            round(100 * q.tiles / q.wave, 2): "That is the whole launch, in waves. The second wave "
            "has what the first one leaves.",
            round(100 * q.tail / q.tiles, 2): "That is the tail's share of the tiles. The question "
            "is which share of the SMs has one of them.",
            round(100 * q.wave_use, 2): "That is the average over both waves.",
            q.tail: "That is how many tiles are left. The question is which share of the SMs has "
            "one of them.",
            round(100 - 100 * q.tail_use, 2): "That is the share of the SMs that wait.",
        },
        within=0.02,
    )


def following() -> Answer:
    """With m = 1408, tiles of 128×256, 132 SMs: which is the largest n that takes two waves?"""
    down = -(-_M // 128)
    last = 2 * _H200.sms // down * 256
    return Answer(
        last,
        f"{down} tiles lie below each other, so that a wave of {_H200.sms} has {_H200.sms // down} "
        f"columns of tiles, {_H200.sms // down * 256:,} columns of C. Two waves have twice as "
        "many.",
        {
            3328: "That is the end of the tile that was begun. The second wave has room for eleven "
            "more columns of tiles.",
            last + 1: "There the third wave begins.",
            last - 1: "The last column of the last tile is free, too.",
            last + 8: "There the third wave has begun already.",
            2 * _H200.sms * 256: "Each column of C takes 11 tiles, not one.",
        },
    )


def side_by_side() -> Answer:
    """64×64 tiles at n = 1024, of the same kernel's speed at 8192: what percentage?"""
    share = 100 * _recorded(1024, _SMALL) / _recorded(8192, _SMALL)
    tiles = 1024**2 // 64**2
    places = 5 * _H200.sms
    busiest = -(-tiles // _H200.sms)
    even = 100 * tiles / (busiest * _H200.sms)
    return Answer(
        round(share),
        f"The {tiles} tiles leave most of the {places} places empty, but nearly every SM has "
        f"{busiest} tiles. By whole tiles for each SM {even:.0f} % would be possible; the rest is "
        "lost where two blocks have too few warps to hide each wait.",
        {
            round(100 * tiles / places): "That is the share of the places. Blocks on one SM share "
            "its FMA units: two of them can use what five would.",
            round(even): "That is the share of SMs that work, if two blocks on an SM were as good "
            "as five.",
        },
        within=0.05,
    )


def stays() -> Answer:
    """143 tiles, 132 blocks that stay: how many times as long as 132 tiles?"""
    q = _cut(_M, 3080, (128, 256))
    return Answer(
        q.waves,
        f"{q.tiles - q.wave} blocks take a second tile, and the others wait for them. Tiles are "
        "as indivisible as before.",
        {
            q.tiles / q.wave: "That would be an even deal of the work. A tile is still computed by "
            "one block.",
            1: "Somebody has to compute the other 11 tiles.",
        },
    )


def without() -> Answer:
    """1024×1024 in tiles of 128×256: how many of the 132 SMs have no tile?"""
    q = _cut(1024, 1024, _LARGE.block[:2])
    return Answer(
        q.wave - q.tiles,
        f"There are {q.down} × {q.across} = {q.tiles} tiles, and each occupies one SM.",
        {
            q.tiles: "That is how many have one.",
            0: "A matrix of a million elements is only a few of these tiles.",
            q.wave - 64: "That is with tiles of 128×128.",
        },
    )


def split() -> Answer:
    """64×64×8192 in one tile: by the bound, how many times as fast with k in 132 parts?"""
    p = Gemm(64, 64, 8192)
    whole, parts = (float(in_tiles(p, _H200, (64, 64), s).seconds) for s in (1, _H200.sms))
    return Answer(
        whole / parts,
        f"The arithmetic takes 1/{_H200.sms} of the time. Two thirds of what is left are the sums: "
        "each part is stored, and a second launch begins and adds them up.",
        {
            _H200.sms: "Somebody has to add up the parts, which takes a trip to memory at least.",
            1: "One tile keeps one SM busy. With its k in parts, every SM has one.",
        },
        within=0.1,
    )


def loads() -> Answer:
    """float16, k = 4098: how many loads of a thread replace one of 16 bytes?"""
    number = loads_per_16_bytes(4098, "float16")
    return Answer(
        number,
        "A row has 8196 bytes. 4 divides that and 8 does not, so that rows begin at any multiple "
        "of 4, and 4 bytes is the widest load that works in each.",
        {
            8: "That is for an odd k, where rows begin at any multiple of 2 bytes.",
            2: "That is for a k that 4 divides: then rows begin at multiples of 8 bytes.",
            1: "That needs rows of a multiple of 16 bytes: a k that 8 divides.",
        },
    )

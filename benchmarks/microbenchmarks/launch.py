"""Whole launches on all SMs, timed by events: streams, transpositions, atomics, no work."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.microbenchmarks.loop import ENTRY, lines, version
from benchmarks.microbenchmarks.patterns import form

_FRAME = """\
.version {version}
.target {target}
.address_size 64
.visible .entry {entry}(.param .u64 param_out, .param .u64 param_data)
.maxntid {threads}, 1, 1
{{
.reg .pred rare;
.reg .b32 tid, block, g, e, x, y, z, r<32>;
.reg .b64 out, data, w, v<40>;
.shared .align 128 .b8 room[{shared_bytes}];
ld.param.u64 out, [param_out];
ld.param.u64 data, [param_data];
mov.u32 tid, %tid.x;
mov.u32 block, %ctaid.x;
mad.lo.u32 g, block, {threads}, tid;
{body}
ret;
}}
"""


@dataclass(frozen=True)
class Launch:
    """A kernel without clocks of its own; what counts is from one event to another.

    fact : the sentence that its result completes
    body : the PTX of a thread: tid, block and g (its number in the launch) are there; `data` is
        read, `out` is written
    blocks : of the launch; a row of results for each
    per_sm : the numbers of blocks are for each SM
    threads : of a block
    bytes : moved by a launch, where that is what counts [B]
    in_bytes, out_bytes : of `data` and `out` [B]
    in_a_row : launches between the events
    shared_bytes : static shared memory of a block [B]
    cold : L2 has none of `data`, and is full of lines that were written
    """

    name: str
    fact: str
    body: str
    blocks: tuple[int, ...]
    per_sm: bool = False
    threads: int = 256
    bytes: int = 0
    in_bytes: int = 0
    out_bytes: int = 0
    in_a_row: int = 4
    shared_bytes: int = 4
    requires: tuple[int, int] = (7, 5)
    cold: bool = False

    def ptx(self, target: str) -> str:
        """The kernel's text for a GPU such as "sm_90"."""
        return _FRAME.format(
            version=version(target),
            target=target,
            entry=ENTRY,
            threads=self.threads,
            shared_bytes=self.shared_bytes,
            body=self.body,
        )


DRAM_BYTES = 1 << 29  # of an array that no L2 holds
L2_BYTES = 1 << 24  # of one that large L2s hold, twice
IN_L2 = 16  # how often each element of the latter is moved in one launch
THREADS = 256
REGISTERS = ("r0", "r1", "r2", "r3")


def _load(width: int, address: str, kind: str = "global.ca") -> str:
    return f"ld.{kind}.{form(width, REGISTERS[: width // 4])}, [{address}];"


def _store(width: int, address: str) -> str:
    type_, _, values = form(width, REGISTERS[: width // 4]).partition(" ")
    return f"st.global.{type_} [{address}], {values};"


def _use(width: int) -> str:
    """A store that never happens, of what was loaded."""
    return lines([_gather(width), *_SINK])


def _gather(width: int) -> str:
    """The words that were loaded, as one with those before."""
    return lines(f"xor.b32 r4, r4, {word};" for word in REGISTERS[: width // 4])


_SINK = ("setp.eq.u32 rare, r4, 12345;", "@rare st.global.u32 [out], r4;")
_ANY = lines(f"mov.u32 r{i}, g;" for i in range(5))  # something to write
STREAMS = {"read": "reading", "copy": "copying", "write": "writing"}


def _stream(
    kind: str, width: int, level: str = "dram", each: int = 1, threads: int = THREADS
) -> Launch:
    """A launch whose threads move `each` elements: neighbours first, then those far on."""
    size = DRAM_BYTES if level == "dram" else L2_BYTES
    times = 1 if level == "dram" else IN_L2
    elements = size // width
    in_flight = elements * times // each
    # L1 would keep what comes again, and ptxas would load it but once.
    space = "global.ca" if level == "dram" else "relaxed.gpu.global"
    steps = [_ANY]
    for k in range(each):
        steps += [
            f"add.u32 e, g, {k * in_flight % elements}; and.b32 e, e, {elements - 1};",
            f"mul.wide.u32 w, e, {width}; add.u64 v0, data, w; add.u64 v1, out, w;",
        ]
        steps += [_load(width, "v0", space)] * (kind != "write")
        steps += [_store(width, "v1")] * (kind != "read")
        steps += [_gather(width)] * (kind == "read")
    steps += _SINK * (kind == "read")
    variant = f"_{each}_each" * (level == "dram" and each > 1)
    variant += f"_{threads}_threads" * (threads != THREADS)
    return Launch(
        f"{level}_{kind}_{8 * width}{variant}",
        f"bytes per second of {STREAMS[kind]} in {level.upper()}, {width} bytes at a time, each "
        f"thread {'once' if each == 1 else f'{each} times'}",
        lines(steps),
        (in_flight // threads,),
        threads=threads,
        bytes=size * times * (2 if kind == "copy" else 1),
        in_bytes=0 if kind == "write" else size,
        out_bytes=0 if kind == "read" else size,
    )


STRIDES = (2, 4, 8, 16, 32)  # words from one lane's to the next


def _strided(kind: str, stride: int) -> Launch:
    """One word of every `stride` is moved, by neighbouring threads."""
    threads = DRAM_BYTES // 4 // stride
    moved = (
        [_ANY, _load(4, "v0"), _use(4)] if kind == "read" else ["mov.u32 r0, g;", _store(4, "v1")]
    )
    steps = [f"mul.wide.u32 w, g, {4 * stride};", "add.u64 v0, data, w; add.u64 v1, out, w;"]
    return Launch(
        f"dram_{kind}_stride_{stride}",
        f"bytes per second of the words that count where all SMs {kind} one word of {stride}",
        lines(steps + moved),
        (threads // THREADS,),
        bytes=4 * threads,
        in_bytes=DRAM_BYTES if kind == "read" else 0,
        out_bytes=DRAM_BYTES if kind == "write" else 0,
    )


TILES = {"32x8": (32, 8), "16x16": (16, 16), "32x32": (32, 32), "256x1": (256, 1)}
TURNED = ("reads", "writes", "transposes")


def _transposition(kind: str, tile: str, n: int) -> Launch:
    """Blocks of `tile` threads over an n x n matrix of words; n and the tile are powers of two."""
    wide, high = TILES[tile]
    steps = [
        f"and.b32 x, tid, {wide - 1}; shr.u32 y, tid, {wide.bit_length() - 1};",
        f"and.b32 z, block, {n // wide - 1}; mad.lo.u32 x, z, {wide}, x;",
        f"shr.u32 z, block, {(n // wide).bit_length() - 1}; mad.lo.u32 y, z, {high}, y;",
        f"mad.lo.u32 e, y, {n}, x; mul.wide.u32 w, e, 4; add.u64 v0, data, w;",
        f"mad.lo.u32 e, x, {n}, y; mul.wide.u32 w, e, 4; add.u64 v1, out, w; add.u64 v2, data, w;",
    ]
    steps += {
        "reads": [_ANY, _load(4, "v2"), _use(4)],
        "writes": ["mov.u32 r0, g;", _store(4, "v1")],
        "transposes": [_load(4, "v0"), _store(4, "v1")],
    }[kind]
    size = 4 * n * n
    return Launch(
        f"{kind}_{n}_columns_{tile}",
        f"bytes per second where blocks of {tile} threads go over {n} x {n} words and a warp's "
        + {
            "reads": "lanes read one column",
            "writes": "lanes write one column",
            "transposes": "lanes read a row and write a column",
        }[kind],
        lines(steps),
        (n * n // (wide * high),),
        threads=wide * high,
        bytes=size * (2 if kind == "transposes" else 1),
        in_bytes=0 if kind == "writes" else size,
        out_bytes=0 if kind == "reads" else size,
    )


COUNT = 1 << 22  # of atomic additions in a launch


def _atomics(name: str, fact: str, element: str, type_: str = "u32") -> Launch:
    """One addition a thread."""
    value = "mov.u32 r0, 1;"
    return Launch(
        f"red_{type_}_{name}",
        f"seconds for {COUNT:,} atomic additions of all SMs to {fact}",
        lines(
            [value, element, "mul.wide.u32 w, e, 4; add.u64 v1, out, w;",
             f"red.global.add.{type_} [v1], r0;"]
        ),
        (COUNT // THREADS,),
        out_bytes=4 * COUNT,
    )  # fmt: skip


BLOCKS = (1, 2, 4, 8, 16, 32)

LAUNCHES = (
    *(_stream(kind, width) for kind in STREAMS for width in (4, 8, 16)),
    *(_stream(kind, 4, threads=1024) for kind in STREAMS),
    *(_stream(kind, 4, each=4) for kind in STREAMS),
    *(_stream(kind, width, "l2", each=4 * IN_L2) for kind in STREAMS for width in (4, 16)),
    *(_strided(kind, stride) for kind in ("read", "write") for stride in STRIDES),
    *(_transposition("transposes", tile, n) for n in (1024, 4096, 8192) for tile in TILES),
    *(_transposition(kind, "32x8", n) for kind in TURNED[:2] for n in (1024, 8192)),
    _atomics("same", "one address", "mov.u32 e, 0;"),
    _atomics("own", "an address of its own for each", "mov.u32 e, g;"),
    _atomics("own", "an address of its own for each", "mov.u32 e, g;", "f32"),
    _atomics("256", "256 addresses, at random", "mul.lo.u32 e, g, 2654435761; shr.u32 e, e, 24;"),
    *(
        Launch(
            f"empty_{threads}_threads_{shared_bytes}_bytes",
            "seconds from one empty launch to the next, by the blocks for each SM",
            "",
            BLOCKS,
            per_sm=True,
            threads=threads,
            in_a_row=100,
            shared_bytes=shared_bytes,
        )
        for threads, shared_bytes in ((32, 4), (256, 4), (1024, 4), (256, 32_768))
    ),
    Launch(
        "empty_alone",
        "seconds from the event before an empty launch of one block to the event after it",
        "",
        (1,),
        in_a_row=1,
    ),
)

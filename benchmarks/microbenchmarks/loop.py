"""What a microbenchmark is: a loop of a few instructions, whose time one SM tells by its own clock.

The kernel is PTX text, so that what runs is what ptxas makes of these very lines, on a GPU as on a
simulated SM. Each warp reads %clock64 before the first turn and after the last one. The loop runs
twice and the second time counts: by then its instructions and its data are where they will be.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from gemmlab.tiling import WARP

ALL_WARPS = (1, 4, 8, 16, 32)  # the last are 1, 2, 4 and 8 for each of an SM's four schedulers
SOME_WARPS = (4, 8, 16)  # for kernels that need more than 64 registers

# What a kernel finds at the start of its data: numbers that the compiler does not know.
FLOATS, INTEGERS, DOUBLES = (1.000001, 1e-9, 1.5), (5, 3), (1.000001, 1e-9)
LANES_AT, RING_AT = 64, 1024  # an offset for each lane, then the ring of a chase, or zeros [B]
DATA_BYTES = 1 << 21

_FRAME = """\
.version {version}
.target {target}
.address_size 64
{constants}
.visible .entry {entry}(.param .u64 param_out, .param .u64 param_data)
.maxntid {threads}, 1, 1
{{
.reg .pred more, rare, on, off, odd, p<16>;
.reg .b32 turns, i, pass, tid, lane, y, x, s, sm, ra, rb, r<160>;
.reg .f32 fa, fb, fc, f<160>;
.reg .f64 da, db, d<16>;
.reg .b64 out, data, at, entry, t0, t1, g0, g1, w, v<40>;
.shared .align 128 .b8 room[{shared_bytes}];
mov.u64 entry, %clock64;
ld.param.u64 out, [param_out];
ld.param.u64 data, [param_data];
mov.u32 tid, %tid.x;
and.b32 lane, tid, 31;
mov.u32 s, room;
ld.global.v2.f32 {{fa, fb}}, [data];
ld.global.f32 fc, [data+8];
ld.global.v2.u32 {{ra, rb}}, [data+16];
ld.global.u32 turns, [data+24];
ld.global.v2.f64 {{da, db}}, [data+32];
mul.wide.u32 at, lane, 4;
add.u64 at, at, data;
ld.global.u32 y, [at+{lanes_at}];
setp.ne.u32 on, ra, 0;
setp.eq.u32 off, ra, 0;
and.b32 x, tid, 1;
setp.ne.u32 odd, x, 0;
{setup}
mov.u32 pass, 0;
PASS:
mov.u64 g0, %globaltimer;
mov.u32 i, 0;
bar.sync 0;
mov.u64 t0, %clock64;
TURN:
.pragma "nounroll";
{body}
add.u32 i, i, 1;
setp.lt.u32 more, i, turns;
@more bra TURN;
mov.u64 t1, %clock64;
mov.u64 g1, %globaltimer;
add.u32 pass, pass, 1;
setp.lt.u32 more, pass, {passes};
@more bra PASS;
{keep}
setp.ne.u32 rare, lane, 0;
@rare bra END;
mov.u32 x, %ctaid.x;
mov.u32 r0, %ntid.x;
mad.lo.u32 x, x, r0, tid;
shr.u32 x, x, 5;
mul.wide.u32 at, x, {row_bytes};
add.u64 at, at, out;
mov.u32 sm, %smid;
cvt.u64.u32 w, sm;
st.global.u64 [at], entry;
st.global.u64 [at+8], t0;
st.global.u64 [at+16], t1;
st.global.u64 [at+24], g0;
st.global.u64 [at+32], g1;
st.global.u64 [at+40], w;
END:
ret;
}}
"""
ENTRY = "microbenchmark"
CLOCKS = np.dtype(
    [(name, np.uint64) for name in ("entry", "start", "end", "start_ns", "end_ns", "sm")]
)


def version(target: str) -> str:
    """The version of PTX that a kernel is written in: from sm_100 on one that knows such a GPU.

    Older GPUs keep an older one, with which their kernels' hashes were recorded.
    """
    return "8.7" if int(target.removeprefix("sm_")) >= 100 else "8.0"


@dataclass(frozen=True)
class Ring:
    """Pointers that lead from one element to the next, `stride` bytes on, and round again."""

    bytes: int
    stride: int


def span(clocks: np.ndarray) -> list[int]:
    """Cycles from the first warp's start to the last one's end, on the SM that takes longest.

    clocks : `CLOCKS` of each (block, warp) of a launch
    """
    return [max(int(on["end"].max() - on["start"].min()) for on in by_sm(clocks))]


def each_warp(clocks: np.ndarray) -> list[int]:
    """When each warp ends, in cycles after the first one's start."""
    return [int(end) for end in clocks["end"].ravel() - clocks["start"].min()]


def between_blocks(clocks: np.ndarray) -> list[int]:
    """Medians of the cycles from a block's end to the next one's entry, and from there to its loop.

    Of an SM that holds n blocks the first to end makes room for the one that comes after n.
    """
    gaps, prologues = [], []
    for on in by_sm(clocks):
        order = np.argsort(on["entry"].min(axis=1))
        entries, starts = (on[name].min(axis=1)[order] for name in ("entry", "start"))
        ends = np.sort(on["end"].max(axis=1))
        held = max(np.arange(1, len(ends) + 1) - np.searchsorted(ends, entries))
        gaps += (entries[held:] - ends[: len(ends) - held]).tolist()
        prologues += (starts - entries)[held:].tolist()
    return [int(np.median(gaps)), int(np.median(prologues))]


def on_one_sm(clocks: np.ndarray) -> np.ndarray:
    """The clocks of the blocks of one SM, the first that has most of them."""
    return max(by_sm(clocks), key=len)


def by_sm(clocks: np.ndarray) -> list[np.ndarray]:
    """The clocks of each SM's blocks."""
    sms = clocks["sm"][:, 0]
    return [clocks[sms == sm] for sm in np.unique(sms)]


@dataclass(frozen=True)
class Loop:
    """A microbenchmark that an SM times by its clock.

    fact : the sentence that its result completes
    body : the PTX of one turn
    count : instructions (or steps) of a turn by which the time is divided
    code : what ptxas makes of a turn, opcode -> how many, without the loop's own counter and branch
    setup : PTX before the loop
    keep : registers whose last values count as used
    warps : of a block; a row of results for each
    blocks_per_sm, of_sms : the launch's blocks: so many, on one SM or on this part of all SMs
    passes : how often the loop runs; the last one counts
    shared_bytes : static shared memory of a block [B]
    lanes : what register y holds in each lane
    data_bytes : global memory that the loop may touch; zeros but for what `memory` says [B]
    ring : the pointers that lie in memory
    cold : nothing of them is in L2 when the kernel is launched
    constants : PTX before the kernel
    requires : the least compute capability
    observe : what is kept of the clocks of a launch
    """

    name: str
    fact: str
    body: str
    count: int
    code: Mapping[str, int]
    setup: str = ""
    keep: tuple[str, ...] = ()
    warps: tuple[int, ...] = ALL_WARPS
    blocks_per_sm: int = 1
    of_sms: float = 0.0
    turns: int = 200
    passes: int = 2
    shared_bytes: int = 16_384
    lanes: tuple[int, ...] = (0,) * WARP
    data_bytes: int = DATA_BYTES
    ring: Ring | None = None
    cold: bool = False
    constants: str = ""
    requires: tuple[int, int] = (7, 5)
    observe: Callable[[np.ndarray], list[int]] = field(default=span, compare=False)

    def ptx(self, target: str) -> str:
        """The kernel's text for a GPU such as "sm_90"."""
        return _FRAME.format(
            version=version(target),
            target=target,
            entry=ENTRY,
            constants=self.constants,
            threads=WARP * max(self.warps),
            shared_bytes=self.shared_bytes,
            lanes_at=LANES_AT,
            setup=self.setup,
            body=self.body,
            passes=self.passes,
            keep=_used(self.keep),
            row_bytes=CLOCKS.itemsize,
        )

    def memory(self, base: int) -> np.ndarray:
        """The first bytes of the kernel's data, which lie at address `base`; zeros follow."""
        data = np.zeros(RING_AT + (self.ring.bytes if self.ring else 0), np.uint8)
        data[:12].view(np.float32)[:] = FLOATS
        data[16:28].view(np.uint32)[:] = *INTEGERS, self.turns
        data[32:48].view(np.float64)[:] = DOUBLES
        data[LANES_AT : LANES_AT + 4 * WARP].view(np.uint32)[:] = self.lanes
        if self.ring:
            places = np.arange(0, self.ring.bytes - 7, self.ring.stride, dtype=np.uint64)
            ring = data[RING_AT:].view(np.uint64)
            ring[places // 8] = np.roll(places, -1) + np.uint64(base + RING_AT)
        return data


def sha256(text: str | bytes) -> str:
    """The hash of a kernel's text or of its machine code."""
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()


def lines(texts: Iterable[str]) -> str:
    """PTX of several instructions."""
    return "\n".join(texts)


def registers(kind: str, count: int, first: int = 0) -> tuple[str, ...]:
    """Names of `count` registers of a kind: "f" float32, "r" 32 bits, "d" float64, "v" 64 bits."""
    return tuple(f"{kind}{i}" for i in range(first, first + count))


def started(names: Iterable[str]) -> str:
    """PTX that gives each register a value of its own."""
    of = {
        "f": "cvt.rn.f32.u32 {0}, tid; fma.rn.f32 {0}, {0}, fb, 0f{1:08X};",
        "r": "mad.lo.u32 {0}, tid, rb, {2};",
        "d": "cvt.rn.f64.u32 {0}, tid; fma.rn.f64 {0}, {0}, db, 0d{3:016X};",
        "v": "cvt.u64.u32 {0}, tid; add.u64 {0}, {0}, {2};",
    }
    texts = []
    for i, name in enumerate(names):
        float_bits = int(np.float32(i + 1).view(np.uint32))
        double_bits = int(np.float64(i + 1).view(np.uint64))
        texts.append(of[name[0]].format(name, float_bits, 2 * i + 1, double_bits))
    return lines(texts)


def _used(names: Iterable[str]) -> str:
    """PTX that stores each register if it has a value that none has."""
    of = {
        "f": "setp.eq.f32 rare, {0}, 0f12345678; @rare st.global.f32 [out], {0};",
        "r": "setp.eq.u32 rare, {0}, 305419896; @rare st.global.u32 [out], {0};",
        "d": "setp.eq.f64 rare, {0}, 0d1234567812345678; @rare st.global.f64 [out], {0};",
        "v": "setp.eq.u64 rare, {0}, 305419896; @rare st.global.u64 [out], {0};",
    }
    return lines(of[name[0]].format(name) for name in names)

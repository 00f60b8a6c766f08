"""What PTX says of an instruction is what compiled code does: halves, bytes, conversions, choices.

One kernel has them all, so that it is assembled once.
"""

import operator

import numpy as np
import pytest

from gemmlab.compiled.sass import cubins
from gemmlab.compiled.sass.execution.machine import launch
from gemmlab.formats import round_to

pytestmark = pytest.mark.ptxas
LANES = 256
U16, I16, I32, I64, F32 = np.uint16, np.int16, np.int32, np.int64, np.float32


def inputs():
    """Three words a lane: bits of all kinds in the first half, numbers of medium size beyond."""
    rng = np.random.default_rng(1)
    words = rng.integers(0, 2**32, (3, LANES), np.uint32)
    medium = rng.normal(0, 4, (3, LANES, 2)).astype(np.float16).view(np.uint32)[..., 0]
    floats = rng.normal(0, 99, (3, LANES)).astype(F32).view(np.uint32)
    words[:, 64:128], words[:, 128:192] = medium[:, 64:128], floats[:, 128:192]
    return words


def pairs(function, form=np.float16):
    """Return the function of words that does this to the numbers in both halves."""

    def of_words(*words):
        halves = [w.view(U16).reshape(LANES, 2) for w in words]
        if form == "bfloat16":
            values = [(h.astype(np.uint32) << 16).view(F32).astype(float) for h in halves]
            bits = round_to(function(*values), form).view(np.uint32) >> 16
        else:
            values = [h.view(np.float16).astype(np.longdouble) for h in halves]
            bits = function(*values).astype(np.float16).view(U16)
        out = np.where(np.isnan(function(*values)), 0x7FFF, bits).astype(U16)
        return np.ascontiguousarray(out).view(np.uint32)[:, 0]

    return of_words


def floats(function):
    return lambda *words: function(*(w.view(F32) for w in words)).astype(F32).view(np.uint32)


def parts(word, kind, bits):
    return np.ascontiguousarray(word).view(kind).reshape(LANES, 32 // bits).astype(I64)


def dots(a, b, c, kinds=(np.int8, np.int8)):
    total = (parts(a, kinds[0], 8) * parts(b, kinds[1], 8)).sum(1)
    return (total + c).astype(np.uint32)


def half_dots(a, b, c):
    return ((parts(a, U16, 16) * parts(b, np.uint8, 8)[:, 2:]).sum(1) + c).astype(np.uint32)


def chosen(a, b, c, digits):
    both = np.concatenate([parts(a, np.uint8, 8), parts(b, np.uint8, 8)], axis=1)
    found = np.take_along_axis(both, np.array(digits)[c & 3], 1)
    return np.ascontiguousarray(found.astype(np.uint8)).view(np.uint32)[:, 0]


def masks(function):
    """Return the function of words that makes ones of a half where the numbers compare so."""

    def of_words(a, b, c):
        one, two = (w.view(np.float16).reshape(LANES, 2) for w in (a, b))
        bits = np.where(function(one, two), 0xFFFF, 0).astype(U16)
        return np.ascontiguousarray(bits).view(np.uint32)[:, 0]

    return of_words


def leading(a, b, c):
    values = np.where(a >> 31, ~a, a).tolist()
    return np.array([v.bit_length() - 1 for v in values], I64).astype(np.uint32)


def clipped(a, b, c):
    one, two = (np.clip(w.view(I32), -128, 127) & 0xFF for w in (a, b))
    return ((c << 16) | (one << 8 | two).astype(np.uint32)).astype(np.uint32)


def as_bytes(a, b, c):
    value = np.nan_to_num(np.rint(a.view(F32).astype(float)), nan=0.0)
    return np.clip(value, 0, 255).astype(np.uint32)


def minimum(a, b):
    return np.where(np.isnan(a), b, np.where(np.isnan(b), a, np.minimum(a, b)))


CASES = {
    "add.f16x2 %r5,%r2,%r3;": pairs(lambda a, b, c: a + b),
    "sub.f16x2 %r5,%r2,%r3;": pairs(lambda a, b, c: a - b),
    "mul.f16x2 %r5,%r2,%r3;": pairs(lambda a, b, c: a * b),
    "fma.rn.f16x2 %r5,%r2,%r3,%r4;": pairs(lambda a, b, c: a * b + c),
    "fma.rn.relu.f16x2 %r5,%r2,%r3,%r4;": pairs(lambda a, b, c: np.maximum(a * b + c, 0)),
    "fma.rn.bf16x2 %r5,%r2,%r3,%r4;": pairs(lambda a, b, c: a * b + c, "bfloat16"),
    "mul.rn.bf16x2 %r5,%r2,%r3;": pairs(lambda a, b, c: a * b, "bfloat16"),
    "min.f16x2 %r5,%r2,%r3;": pairs(lambda a, b, c: minimum(a, b)),
    "max.NaN.f16x2 %r5,%r2,%r3;": pairs(lambda a, b, c: np.maximum(a, b)),
    "neg.f16x2 %r6,%r2; abs.f16x2 %r7,%r3; add.f16x2 %r5,%r6,%r7;": pairs(
        lambda a, b, c: abs(b) - a
    ),
    "set.gt.u32.f16x2 %r5,%r2,%r3;": masks(operator.gt),
    "setp.gtu.f16x2 %p1|%p2,%r2,%r3; selp.u32 %r6,65535,0,%p1; selp.u32 %r7,0xffff0000,0,%p2; "
    "or.b32 %r5,%r6,%r7;": masks(lambda a, b: ~(a <= b)),
    "cvt.rz.f16.f32 %h7,%f2; mov.b32 %r5,{%h7,%h0};": lambda a, b, c: np.where(
        np.isnan(a.view(F32)), 0x7FFF, round_to(a.view(F32), "float16", "RZ").view(U16)
    ).astype(np.uint32),
    "cvt.rni.sat.u8.f32 %r5,%f2;": as_bytes,
    "cvt.rn.f16.s32 %h7,%r2; mov.b32 %r5,{%h7,%h0};": lambda a, b, c: a.view(I32)
    .astype(np.float64).astype(np.float16).view(U16).astype(np.uint32),
    "cvt.rn.f32.s16 %f5,%h1; mov.b32 %r5,%f5;": lambda a, b, c: parts(a, I16, 16)[:, 0]
    .astype(F32).view(np.uint32),
    "cvt.pack.sat.s8.s32.b32 %r5,%r2,%r3,%r4;": clipped,
    "dp4a.s32.s32 %r5,%r2,%r3,%r4;": dots,
    "dp4a.u32.s32 %r5,%r2,%r3,%r4;": lambda a, b, c: dots(a, b, c, (np.uint8, np.int8)),
    "dp2a.hi.u32.u32 %r5,%r2,%r3,%r4;": half_dots,
    "vabsdiff4.u32.u32.u32.add %r5,%r2,%r3,%r4;": lambda a, b, c: (
        abs(parts(a, np.uint8, 8) - parts(b, np.uint8, 8)).sum(1) + c
    ).astype(np.uint32),
    "sad.u32 %r5,%r2,%r3,%r4;": lambda a, b, c: (
        abs(a.astype(I64) - b.astype(I64)) + c
    ).astype(np.uint32),
    "bfind.s32 %r5,%r2;": leading,
    "prmt.b32.f4e %r5,%r2,%r3,%r4;": lambda a, b, c: chosen(
        a, b, c, [(i, i + 1, i + 2, i + 3) for i in range(4)]
    ),
    "prmt.b32.rc16 %r5,%r2,%r3,%r4;": lambda a, b, c: chosen(
        a, b, c, [(0, 1, 0, 1), (2, 3, 2, 3)] * 2
    ),
    "prmt.b32.ecr %r5,%r2,%r3,%r4;": lambda a, b, c: chosen(
        a, b, c, [(0, 0, 0, 0), (0, 1, 1, 1), (0, 1, 2, 2), (0, 1, 2, 3)]
    ),
    "szext.wrap.s32 %r5,%r2,%r3;": lambda a, b, c: np.where(
        b & 31, (a << (-b & 31)).view(I32) >> (-b & 31).astype(I32), 0
    ).astype(I32).view(np.uint32),
    "min.s16x2 %r5,%r2,%r3;": lambda a, b, c: np.ascontiguousarray(
        np.minimum(parts(a, I16, 16), parts(b, I16, 16)).astype(I16)
    ).view(np.uint32)[:, 0],
    "add.s16x2 %r5,%r2,%r3;": lambda a, b, c: np.ascontiguousarray(
        (parts(a, I16, 16) + parts(b, I16, 16)).astype(I16)
    ).view(np.uint32)[:, 0],
    "max.s32.relu %r5,%r2,%r3;": lambda a, b, c: np.maximum(
        np.maximum(a.view(I32), b.view(I32)), 0
    ).view(np.uint32),
    "min.xorsign.abs.f32 %f5,%f2,%f3; mov.b32 %r5,%f5;": lambda a, b, c: (
        floats(lambda x, y: minimum(abs(x), abs(y)))(a, b) & 0x7FFFFFFF
    ) | ((a ^ b) & 0x80000000),
    "match.all.sync.b32 %r5|%p1,%r1,0xffffffff;": lambda a, b, c: 0 * a,
    "cvt.rn.satfinite.e5m2x2.f32 %h7,%f2,%f3; cvt.rn.f16x2.e5m2x2 %r5,%h7;": None,
    "cvt.rn.satfinite.e4m3x2.f32 %h7,%f2,%f3; cvt.rn.f16x2.e4m3x2 %r5,%h7;": None,
}  # fmt: skip

HEAD = """.version 8.8
.target sm_90
.address_size 64
.visible .entry another(.param .u64 pa) { ret; }
.visible .entry all_of_them(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 pd,
                            .param .u32 count)
{
 .reg .pred %p<8>; .reg .b16 %h<16>; .reg .b32 %r<32>; .reg .f32 %f<16>; .reg .b64 %rd<32>;
 mov.u32 %r1,%tid.x; mul.wide.u32 %rd9,%r1,4; ld.param.u32 %r9,[count]; mul.wide.u32 %rd10,%r9,4;
 ld.param.u64 %rd1,[pa]; ld.param.u64 %rd2,[pb]; ld.param.u64 %rd3,[pc]; ld.param.u64 %rd4,[pd];
 add.u64 %rd1,%rd1,%rd9; add.u64 %rd2,%rd2,%rd9; add.u64 %rd3,%rd3,%rd9; add.u64 %rd4,%rd4,%rd9;
 ld.global.u32 %r2,[%rd1]; ld.global.u32 %r3,[%rd2]; ld.global.u32 %r4,[%rd3];
 mov.b32 %f2,%r2; mov.b32 %f3,%r3; mov.b32 {%h1,%h2},%r2; mov.b16 %h0,0;
"""
PTX = (
    HEAD
    + "".join(f" {body}\n st.global.u32 [%rd4],%r5; add.u64 %rd4,%rd4,%rd10;\n" for body in CASES)
    + " ret;\n}\n"
)


@pytest.fixture(scope="module")
def found():
    code = cubins.listing(cubins.module(PTX, "sm_90"), "all_of_them")
    out = np.zeros((len(CASES), LANES), np.uint32)
    a, b, c = inputs()
    launch(code, 1, LANES, a, b, c, out, np.int32(LANES)).run()
    return dict(zip(CASES, out, strict=True))


@pytest.mark.parametrize("body", [body for body, expected in CASES.items() if expected])
def test_an_instruction_does_what_ptx_says(found, body):
    with np.errstate(all="ignore"):
        expected = CASES[body](*inputs())
    np.testing.assert_array_equal(found[body], expected)


@pytest.mark.parametrize(("form", "bits", "largest"), [("e4m3", 3, 448.0), ("e5m2", 2, 57344.0)])
def test_floats_of_eight_bits_are_the_nearest(found, form, bits, largest):
    """To them and back: each is off by half a unit in its last place at most."""
    (body,) = (body for body in CASES if f"satfinite.{form}" in body)
    low, high = found[body].view(np.float16).reshape(LANES, 2).T.astype(float)
    with np.errstate(invalid="ignore"):
        a, b, _ = (w.view(F32).astype(float) for w in inputs())
    for exact, got in ((b, low), (a, high)):
        cut = np.clip(exact, -largest, largest)
        least = -6 if form == "e4m3" else -14
        unit = np.ldexp(1.0, np.maximum(np.frexp(cut)[1] - 1, least) - bits)
        right = np.abs(cut - got) <= unit / 2
        assert (right | (np.isnan(exact) & np.isnan(got))).all()
        assert (np.signbit(exact) == np.signbit(got))[~np.isnan(exact)].all()

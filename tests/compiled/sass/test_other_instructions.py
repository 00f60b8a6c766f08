"""What nvcc and Triton emit and no kernel of the course: matrices, jumps, memories by pointers."""

import numpy as np
import pytest

from gemmlab.compiled.sass import cubins
from gemmlab.compiled.sass.execution.machine import launch

pytestmark = pytest.mark.ptxas
LANES = np.arange(32)
G, T = LANES // 4, LANES % 4
DIGITS = np.array((3, 1, 4, 1, 5, 9, 2, 6))
PTX = """.version 8.8
.target sm_90
.address_size 64
.const .align 1 .b8 digits[8] = {3, 1, 4, 1, 5, 9, 2, 6};
.visible .entry matrices(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 pd,
                         .param .u64 pe)
{
 .reg .b32 %r<40>; .reg .b64 %rd<20>; .reg .f64 %fd<9>;
 mov.u32 %r1,%tid.x; mul.wide.u32 %rd9,%r1,4; mul.wide.u32 %rd10,%r1,8; mul.wide.u32 %rd11,%r1,16;
 ld.param.u64 %rd1,[pa]; ld.param.u64 %rd2,[pb]; ld.param.u64 %rd3,[pc]; ld.param.u64 %rd4,[pd];
 ld.param.u64 %rd5,[pe]; add.u64 %rd6,%rd1,%rd11; add.u64 %rd7,%rd2,%rd10; add.u64 %rd8,%rd3,%rd11;
 ld.global.v4.u32 {%r2,%r3,%r4,%r5},[%rd6]; ld.global.v2.u32 {%r6,%r7},[%rd7];
 mov.u32 %r8,7; mov.u32 %r9,-3; mov.u32 %r10,0;
 mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32 {%r11,%r12,%r13,%r14},{%r2,%r3,%r4,%r5},{%r6,%r7},
   {%r8,%r9,%r10,%r8};
 st.global.v4.u32 [%rd8],{%r11,%r12,%r13,%r14};
 movmatrix.sync.aligned.m8n8.trans.b16 %r15,%r2; add.u64 %rd12,%rd4,%rd9;
 st.global.u32 [%rd12],%r15;
 cvt.rn.f64.s32 %fd1,%r2; cvt.rn.f64.s32 %fd2,%r6; mov.f64 %fd3,0d3ff0000000000000;
 mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%fd4,%fd5},{%fd1},{%fd2},{%fd3,%fd3};
 add.u64 %rd13,%rd5,%rd11; st.global.v2.f64 [%rd13],{%fd4,%fd5};
 ret;
}
.visible .entry places(.param .u64 pa, .param .u64 pb)
{
 .reg .b32 %r<40>; .reg .b64 %rd<20>; .reg .pred %p<3>;
 .shared .align 4 .b8 mine[128];
 mov.u32 %r1,%tid.x; mul.wide.u32 %rd9,%r1,4; ld.param.u64 %rd1,[pa]; ld.param.u64 %rd2,[pb];
 add.u64 %rd3,%rd1,%rd9; ld.global.u32 %r2,[%rd3]; mov.u32 %r3,mine; shl.b32 %r4,%r1,2;
 add.u32 %r3,%r3,%r4; xor.b32 %r5,%r2,-1; st.shared.u32 [%r3],%r5; bar.sync 0;
 cvt.u64.u32 %rd4,%r3; cvta.shared.u64 %rd5,%rd4; setp.lt.u32 %p1,%r1,20;
 selp.b64 %rd6,%rd5,%rd3,%p1; ld.u32 %r6,[%rd6];
 and.b32 %r7,%r2,7; mov.u64 %rd7,digits; cvt.u64.u32 %rd8,%r7; add.u64 %rd7,%rd7,%rd8;
 ld.const.u8 %r8,[%rd7]; and.b32 %r9,%r2,3;
 ts: .branchtargets L0, L1, L2, L3;
 brx.idx %r9, ts;
L0: add.u32 %r10,%r2,5; bra DONE;
L1: mul.lo.u32 %r10,%r2,%r2; bra DONE;
L2: popc.b32 %r10,%r2; bra DONE;
L3: brev.b32 %r10,%r2;
DONE:
 mul.wide.u32 %rd10,%r1,12; add.u64 %rd11,%rd2,%rd10;
 st.global.u32 [%rd11],%r6; st.global.u32 [%rd11+4],%r8; st.global.u32 [%rd11+8],%r10;
 ret;
}
"""


@pytest.fixture(scope="module")
def module():
    return cubins.module(PTX, "sm_90")


def test_products_of_bytes_and_of_float64_and_a_transposition(module):
    rng = np.random.default_rng(2)
    a, b = rng.integers(0, 2**32, (32, 4), np.uint32), rng.integers(0, 2**32, (32, 2), np.uint32)
    c, d = np.zeros((32, 4), np.int32), np.zeros(32, np.uint32)
    e = np.zeros((32, 2))
    launch(cubins.listing(module, "matrices"), 1, 32, a, b, c, d, e).run()
    left, right = np.zeros((16, 32), np.int64), np.zeros((32, 8), np.int64)
    for lane in LANES:
        g, t = divmod(lane, 4)
        of_a, of_b = a[lane].view(np.int8).reshape(4, 4), b[lane].view(np.uint8).reshape(2, 4)
        for i in range(4):
            left[g + 8 * (i % 2), 16 * (i // 2) + 4 * t + np.arange(4)] = of_a[i]
        for i in range(2):
            right[16 * i + 4 * t + np.arange(4), g] = of_b[i]
    sums = left @ right
    expected = [sums[G, 2 * T] + 7, sums[G, 2 * T + 1] - 3, sums[G + 8, 2 * T]]
    assert np.array_equal(c[:, :3], np.stack(expected, 1))
    matrix = np.ascontiguousarray(a[:, 0]).view(np.uint16).reshape(8, 8)
    assert np.array_equal(d.view(np.uint16).reshape(8, 8), matrix.T)
    left, right = np.zeros((8, 4)), np.zeros((4, 8))
    left[G, T], right[T, G] = a[:, 0].view(np.int32), b[:, 0].view(np.int32)
    sums = left @ right + 1
    np.testing.assert_allclose(e, np.stack([sums[G, 2 * T], sums[G, 2 * T + 1]], 1), rtol=1e-12)


def test_a_jump_a_byte_of_a_constant_and_pointers_to_either_memory(module):
    a = np.random.default_rng(3).integers(0, 2**32, 32, np.uint32)
    out = np.zeros((32, 3), np.uint32)
    launch(cubins.listing(module, "places"), 1, 32, a, out).run()
    assert np.array_equal(out[:, 0], np.where(LANES < 20, ~a, a))
    assert np.array_equal(out[:, 1], DIGITS[a & 7])
    backwards = [int(f"{int(x):032b}"[::-1], 2) for x in a]
    ways = np.stack([a + 5, a * a, np.bitwise_count(a), np.array(backwards, np.uint32)])
    assert np.array_equal(out[:, 2], ways[a & 3, LANES])

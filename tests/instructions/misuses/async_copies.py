"""Asynchronous copies that are wrong, or not waited for."""

import numpy as np

from gemmlab import cuda
from gemmlab.instructions import (
    cp_async_16,
    cp_async_commit,
    cp_async_wait,
    ldmatrix_x4,
    shared_view,
)
from tests.instructions.misuses.table import F32, hazard, refused


@refused("takes an array in shared memory; s is in local memory", F32, compiled=None)
def copy_to_local(a):
    s = cuda.local.array((32, 8), np.float32)
    cp_async_16(s, 0, 0, a, cuda.threadIdx.x, 0)  # fault


@refused("takes an array in global memory; s is in shared memory", F32, compiled=None)
def copy_within_shared(a):
    s = cuda.shared.array((32, 8), np.float32, alignment=16)
    cp_async_16(s, cuda.threadIdx.x, 0, s, cuda.threadIdx.x, 4)  # fault


@refused("arrays of one type, not from float32 to float16", F32,
         compiled="arrays of one type, not float16 and float32")  # fmt: skip
def copy_of_another_type(a):
    s = cuda.shared.array((32, 8), np.float16, alignment=16)
    cp_async_16(s, cuda.threadIdx.x, 0, a, cuda.threadIdx.x, 0)  # fault


@refused("valid is 2.0 .float64.; use True or False", F32, compiled="valid is float64; use True")
def valid_is_a_float(a):
    s = cuda.shared.array((32, 8), np.float32, alignment=16)
    cp_async_16(s, cuda.threadIdx.x, 0, a, cuda.threadIdx.x, 0, 2.0)  # fault


@hazard("out-of-bounds", "cp_async_16 of 5 elements; valid is 0 to 4", F32, thread=30)
def more_than_all_is_valid(a):
    s = cuda.shared.array((32, 8), np.float32, alignment=16)
    cp_async_16(s, cuda.threadIdx.x, 0, a, cuda.threadIdx.x, 0, cuda.threadIdx.x // 6)  # fault


@hazard("out-of-bounds", "cp_async_16 of -1 elements", F32)
def less_than_nothing_is_valid(a):
    s = cuda.shared.array((32, 8), np.float32, alignment=16)
    cp_async_16(s, cuda.threadIdx.x, 0, a, cuda.threadIdx.x, 0, -1)  # fault


@hazard("misaligned", "s begins at a multiple of 4 B: declare it with alignment=16", F32)
def copy_to_what_is_not_aligned(a):
    s = cuda.shared.array((32, 8), np.float32)
    cp_async_16(s, cuda.threadIdx.x, 0, a, cuda.threadIdx.x, 0)  # fault


@hazard("misaligned", r"thread \(1\) accesses byte 36 of s", F32, thread=1)
def copy_to_odd_rows(a):
    s = cuda.shared.array((32, 9), np.float32, alignment=16)
    cp_async_16(s, cuda.threadIdx.x, 0, a, cuda.threadIdx.x, 0)  # fault


@hazard("out-of-bounds", r"a\[32, …\] is outside, its dimension 0 has 32", F32, thread=31)
def copy_from_beyond(a):
    s = cuda.shared.array((32, 8), np.float32, alignment=16)
    cp_async_16(s, cuda.threadIdx.x, 0, a, cuda.threadIdx.x + 1, 0)  # fault


@hazard("out-of-bounds", r"s\[31, …\] is outside, its dimension 0 has 31", F32, thread=31)
def zeros_to_beyond(a):
    s = cuda.shared.array((31, 8), np.float32, alignment=16)
    t = cuda.threadIdx.x
    cp_async_16(s, t, 0, a, t, 0, t < 31)  # fault


@hazard("async-not-waited", r"thread \(0\) reads s\[0, 1\].*thread has not waited for it \[", F32)
def read_before_the_wait(a):
    s = cuda.shared.array((32, 8), np.float32, alignment=16)
    t = cuda.threadIdx.x
    cp_async_16(s, t, 0, a, t, 0)
    cp_async_commit()
    a[t, 0] = s[t, 1]  # fault


@hazard("async-not-waited", "not waited for it, nor committed it to a group", F32)
def wait_for_what_is_in_no_group(a):
    s = cuda.shared.array((32, 8), np.float32, alignment=16)
    t = cuda.threadIdx.x
    cp_async_16(s, t, 0, a, t, 0)
    cp_async_wait(0)
    a[t, 0] = s[t, 1]  # fault


@hazard("async-not-waited", r"thread \(16\) reads s\[16, 1\].*nor committed", F32, thread=16)
def half_a_warp_commits(a):
    s = cuda.shared.array((32, 8), np.float32, alignment=16)
    t = cuda.threadIdx.x
    cp_async_16(s, t, 0, a, t, 0)
    if t < 16:
        cp_async_commit()
    cp_async_wait(0)
    a[t, 0] = s[t, 1]  # fault


@hazard("async-not-waited", r"thread \(16\) reads .* has not waited for it \[", F32, thread=16)
def half_a_warp_waits(a):
    s = cuda.shared.array((32, 8), np.float32, alignment=16)
    t = cuda.threadIdx.x
    cp_async_16(s, t, 0, a, t, 0)
    cp_async_commit()
    if t < 16:
        cp_async_wait(0)
    a[t, 0] = s[t, 1]  # fault


@hazard("async-not-waited", "its thread has not waited for it", F32, threads=64)
def another_warp_waits(a):
    s = cuda.shared.array((32, 8), np.float32, alignment=16)
    t = cuda.threadIdx.x
    if t < 32:
        cp_async_16(s, t, 0, a, t, 0)
        cp_async_commit()
    else:
        cp_async_wait(0)
    cuda.syncthreads()
    a[t % 32, t // 32] = s[t % 32, 1]  # fault


@hazard("async-not-waited", r"updates s\[0, 1\], which the copy of line", F32)
def updated_before_the_wait(a):
    s = cuda.shared.array((32, 8), np.float32, alignment=16)
    t = cuda.threadIdx.x
    cp_async_16(s, t, 0, a, t, 0)
    cp_async_commit()
    cuda.atomic.add(s, (t, 1), np.float32(1))  # fault


@hazard("async-not-waited", r"writes s\[0, 0\], which the copy of line", F32)
def written_before_the_wait(a):
    s = cuda.shared.array((32, 8), np.float32, alignment=16)
    t = cuda.threadIdx.x
    cp_async_16(s, t, 0, a, t, 0)
    s[t, 0] = 1  # fault
    cp_async_commit()
    cp_async_wait(0)


@hazard("async-not-waited", r"may read a\[0, 1\] until .* written it \(1.0, now 99.0\)", F32)
def source_written_before_the_wait(a):
    s = cuda.shared.array((32, 8), np.float32, alignment=16)
    t = cuda.threadIdx.x
    cp_async_16(s, t, 0, a, t, 0)
    cp_async_commit()
    a[t, 1] = 99
    cp_async_wait(0)  # fault


@hazard("async-not-waited", r"overwrites s\[0, 0\], which the copy of line", F32)
def copied_twice(a):
    s = cuda.shared.array((32, 8), np.float32, alignment=16)
    t = cuda.threadIdx.x
    cp_async_16(s, t, 0, a, t, 0)
    cp_async_16(s, t, 0, a, t, 4)  # fault


@hazard("async-not-waited", r"reads s\[0, 31, 1\]", F32)
def waits_for_too_few_groups(a):
    s = cuda.shared.array((2, 32, 8), np.float32, alignment=16)
    t = cuda.threadIdx.x
    for stage in range(2):
        cp_async_16(s, stage, t, 0, a, t, 4 * stage)
        cp_async_commit()
    cp_async_wait(2)
    cuda.syncthreads()
    a[t, 0] = s[0, 31 - t, 1]  # fault


@hazard("async-not-waited", r"reads u\[0, 3\]", F32, shared_bytes=1024)
def read_through_another_view(a):
    s, u = shared_view((32, 8), np.float32, 0), shared_view((32, 16), np.float16, 0)
    t = cuda.threadIdx.x
    cp_async_16(s, t, 0, a, t, 0)
    a[t, 0] = u[t, 3]  # fault


@hazard("async-not-waited", r"reads s\[0, 0\]", F32)
def matrices_before_the_wait(a):
    s = cuda.shared.array((32, 8), np.float32, alignment=16)
    cp_async_16(s, cuda.threadIdx.x, 0, a, cuda.threadIdx.x, 0)
    cp_async_commit()
    ldmatrix_x4(s, cuda.threadIdx.x, 0)  # fault

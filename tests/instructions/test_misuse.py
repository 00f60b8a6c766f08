"""Instructions used wrongly: what the simulator says, at which line, and what the compiler says.

In each kernel of the table the line at fault carries the comment `fault`. What the compiler cannot
know, such as where an array lies, it lets pass: there `compiled` is None.
"""

import linecache
import re
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

from gemmlab import cuda, instructions, simulate
from gemmlab.instructions import (
    cp_async_4,
    cp_async_16,
    cp_async_commit,
    cp_async_wait,
    cvt_rn_f16_f32,
    cvt_rn_f16x2_f32,
    fragments,
    ldmatrix_x1,
    ldmatrix_x2,
    ldmatrix_x4,
    load_v2,
    load_v4,
    mma_m16n8k8_f32_f16,
    mma_m16n8k8_f32_tf32,
    mma_m16n8k16_f32_f16,
    shared_view,
    stmatrix_x4,
    store_v4,
    unpack_f16x2,
    wmma_load_a_row,
    wmma_load_c_f32,
    wmma_mma_row_col_f16,
    wmma_store_d_f16,
)
from gemmlab.simt import UnsupportedError
from tests.hardware.ptx import compiled

F32 = np.arange(256, dtype=np.float32).reshape(32, 8)
F64 = np.zeros((32, 8))
F16 = np.zeros((32, 32), np.float16)
ZERO, WORD = np.float32(0), np.uint32(0)
ZEROS, WORDS = (ZERO, ZERO, ZERO, ZERO), (WORD, WORD, WORD, WORD)
TABLE = np.zeros((8, 8), np.float32)
form = fragments.layout("m16n8k16", "A")
element, holds = form.element, form.holds


@dataclass(frozen=True)
class Misuse:
    """A kernel that is wrong, with its arguments.

    refused : what an error of the simulator says; "" where it reports a hazard
    kind, message, thread : of the hazard
    compiled : what the compiler says; None where it does not refuse
    """

    kernel: Callable
    arrays: tuple
    refused: str
    kind: str
    message: str
    thread: int
    compiled: str | None
    options: dict


CASES: list[Misuse] = []


def refused(simulated: str, *arrays: np.ndarray, compiled: str | None, **options: object):
    """Note a kernel that the simulator does not run."""

    def note(kernel: Callable) -> Callable:
        CASES.append(Misuse(kernel, arrays, simulated, "", "", 0, compiled, options))
        return kernel

    return note


def hazard(kind: str, message: str, *arrays: np.ndarray, thread: int = 0, **options: object):
    """Note a kernel in which the simulator finds a fault that no compiler sees."""

    def note(kernel: Callable) -> Callable:
        CASES.append(Misuse(kernel, arrays, "", kind, message, thread, None, options))
        return kernel

    return note


# --------------------------------------------------------------------- wrong arguments of any sort


@refused("load_v4: a takes 2 indices, not 1", F32, compiled="load_v4 takes more than 2 arguments")
def one_index(a):
    load_v4(a, 0)  # fault


@refused("load_v4 takes 3 arguments, not 4", F32, compiled="load_v4 takes 3 arguments, not 4")
def three_indices(a):
    load_v4(a, 0, 0, 0)  # fault


@refused("index of a is a float64 of each thread", F32, compiled="index of array is float64")
def float_index(a):
    load_v4(a, 0, cuda.threadIdx.x / 4)  # fault


@refused("index of a is 0.0 .float64.", F16, compiled="index of tile is float64")
def float_index_of_a_tile(a):
    wmma_load_a_row(a, 0, 0.0)  # fault


@refused("index of a is a bool of each thread", F32, compiled="index of array is bool")
def bool_index(a):
    load_v4(a, cuda.threadIdx.x > 3, 0)  # fault


@refused("load_v4 takes its operands by position", F32, compiled="operands by position")
def by_name(a):
    load_v4(a, 0, j=0)  # fault


@refused("array of load_v4 is 0.0 .float32., not an array", F32, compiled="float32, not an array")
def an_element(a):
    load_v4(a[0, 0], 0)  # fault


@refused("would access 32 bytes of an array of float64", F64, compiled="would access 32 bytes")
def too_wide(a):
    load_v4(a, 0, 0)  # fault


@refused("would access 2 bytes of an array of int8", np.zeros((4, 8), np.int8),
         compiled="would access 2 bytes of an array of int8")  # fmt: skip
def too_narrow(a):
    load_v2(a, 0, 0)  # fault


@refused("integers or floats, not of bool", np.zeros((4, 8), bool), compiled="not of bool")
def booleans(a):
    load_v4(a, 0, 0)  # fault


@refused("moves 4 bytes, which is no whole element of float64", F64, compiled="no whole element")
def half_an_element(a):
    s = cuda.shared.array((32, 8), np.float64, alignment=16)
    cp_async_4(s, cuda.threadIdx.x, 0, a, cuda.threadIdx.x, 0)  # fault


@refused("values is a tuple of 4 numbers, not a tuple of 2 float32", F32,
         compiled="values is a tuple of 4 numbers, not UniTuple.float32 x 2.")  # fmt: skip
def too_few_values(a):
    store_v4(a, 0, 0, (ZERO, ZERO))  # fault


@refused("values is a tuple of 4 numbers, not the array acc", F32,
         compiled="values is a tuple of 4 numbers, not array.float32, 1d")  # fmt: skip
def an_array_of_values(a):
    acc = cuda.local.array(4, np.float32)
    store_v4(a, 0, 0, acc)  # fault


@refused("store_v4 writes, and TABLE cannot be written|a constant array cannot be written", F32,
         compiled=None)  # fmt: skip
def a_constant(a):
    store_v4(TABLE, 0, 0, ZEROS)  # fault


@refused("groups=64; use 0 to 63", F32, compiled="cp_async_wait: groups=64; use 0 to 63")
def too_many_groups(a):
    cp_async_wait(64)  # fault


@refused("groups is 0.0 .float64.; use a whole number from 0 to 63", F32, compiled="a constant")
def float_groups(a):
    cp_async_wait(0.0)  # fault


@refused("groups is True", F32, compiled="groups must be a constant")
def bool_groups(a):
    cp_async_wait(True)  # fault


@refused("cp_async_commit takes 0 arguments, not 1", F32, compiled="takes 0 arguments, not 1")
def commit_of_something(a):
    cp_async_commit(0)  # fault


# ------------------------------------------------------------------------ registers of a wrong type


@refused(
    "a is a tuple of 4 uint32, pairs of float16, not a tuple of 4 float32",
    F32,
    compiled="a is a tuple of 4 uint32, pairs of float16, not UniTuple.float32 x 4.",
)
def floats_for_packed(a):
    mma_m16n8k16_f32_f16(ZEROS, (WORD, WORD), ZEROS)  # fault


@refused("b is one uint32, a pair of float16, not a tuple of 1 uint32", F32,
         compiled="b is one uint32, a pair of float16, not UniTuple")  # fmt: skip
def a_tuple_for_one(a):
    mma_m16n8k8_f32_f16((WORD, WORD), (WORD,), ZEROS)  # fault


@refused("c is a tuple of 4 float32, not a tuple of 4 uint32", F32,
         compiled="c is a tuple of 4 float32, not UniTuple.uint32 x 4.")  # fmt: skip
def words_for_sums(a):
    mma_m16n8k16_f32_f16(WORDS, (WORD, WORD), WORDS)  # fault


@refused("a is a tuple of 4 float32, not a tuple of 4 uint32", F32, compiled="of 4 float32, not")
def words_for_tf32(a):
    mma_m16n8k8_f32_tf32(WORDS, (ZERO, ZERO), ZEROS)  # fault


@refused("takes more than 2 arguments", F32, compiled="takes more than 2 arguments")
def no_sums(a):
    mma_m16n8k16_f32_f16(WORDS, (WORD, WORD))  # fault


@refused("word is one uint32, not 1.0 .float32.", F32, compiled="word is one uint32, not float32")
def a_float_for_a_word(a):
    unpack_f16x2(a[0, 1])  # fault


@refused("x is one float32, not None", F32, compiled="x is one float32, not none")
def nothing_for_a_number(a):
    cvt_rn_f16_f32(None)  # fault


@refused("x is one float32, not the array a", F32, compiled="x is one float32, not array")
def an_array_for_a_number(a):
    cvt_rn_f16_f32(a)  # fault


@refused("takes more than 1 arguments", F32, compiled="takes more than 1 arguments")
def half_a_pair(a):
    cvt_rn_f16x2_f32(a[0, 0])  # fault


@refused(
    "c is a tuple of 4 uint32, pairs of float16, not a tuple of 8 uint32",
    F16,
    compiled="c is a tuple of 4 uint32, pairs of float16, not UniTuple.uint32 x 8.",
)
def a_stored_as_d(a):
    x = wmma_load_a_row(a, 0, 0)
    wmma_store_d_f16(a, 0, 0, x)  # fault


@refused(
    "a is a tuple of 8 uint32, pairs of float16, not a tuple of 2 uint32",
    F16,
    compiled="a is a tuple of 8 uint32, pairs of float16, not UniTuple.uint32 x 2.",
)
def operands_of_another_size(a):
    wmma_mma_row_col_f16((WORD, WORD), WORDS, WORDS)  # fault


# ----------------------------------------------------------------------------- asynchronous copies


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


# ------------------------------------------------------------------------- matrices and whole warps


@refused("takes an array in shared memory; a is in global memory", F16, compiled=None)
def matrices_of_global_memory(a):
    ldmatrix_x4(a, cuda.threadIdx.x, 0)  # fault


@hazard("misaligned", r"thread \(1\) accesses byte 18 of s; ldmatrix_x4 needs", F16, thread=1)
def rows_of_nine(a):
    s = cuda.shared.array((32, 9), np.float16, alignment=16)
    t = cuda.threadIdx.x
    for i in range(9):
        s[t, i] = i
    cuda.syncwarp()
    ldmatrix_x4(s, t, 0)  # fault


@hazard("divergent-barrier", r"ldmatrix_x2 needs all 32 lanes.*thread \(16\) does not get", F16)
def half_a_warp_loads(a):
    s = cuda.shared.array((32, 8), np.float16, alignment=16)
    t = cuda.threadIdx.x
    for i in range(8):
        s[t, i] = i
    cuda.syncwarp()
    if t < 16:
        ldmatrix_x2(s, t, 0)  # fault


@hazard("divergent-barrier", "the last one of a block of 16 threads has 16", F16, threads=16)
def a_block_of_half_a_warp(a):
    s = cuda.shared.array((16, 8), np.float16, alignment=16)
    t = cuda.threadIdx.x
    for i in range(8):
        s[t, i] = i
    cuda.syncwarp()
    ldmatrix_x1(s, t % 8, 0)  # fault


@hazard("divergent-barrier", r"thread \(40\) does not get here", F16, thread=32, threads=64)
def some_lanes_have_returned(a):
    if cuda.threadIdx.x >= 40:
        return
    wmma_load_a_row(a, 0, 0)  # fault


@hazard("divergent-barrier", r"thread \(16\) names another tile", F16, thread=16)
def two_tiles_for_a_warp(a):
    wmma_load_a_row(a, 0, cuda.threadIdx.x // 16 * 16)  # fault


@refused("takes a matrix of float16, not a, float32 of 2 dimensions", F32,
         compiled="takes a matrix of float16, not array.float32, 2d")  # fmt: skip
def a_tile_of_another_type(a):
    wmma_load_a_row(a, 0, 0)  # fault


@refused("takes a matrix of float16, not a, float16 of 1 dimensions", F16.ravel(),
         compiled="takes a matrix of float16, not array.float16, 1d")  # fmt: skip
def a_tile_of_a_vector(a):
    wmma_load_a_row(a, 0)  # fault


@refused("takes an array in global or shared memory; this is in local", F16, compiled=None)
def a_tile_of_local_memory(a):
    s = cuda.local.array((16, 16), np.float16)
    wmma_load_a_row(s, 0, 0)  # fault


@hazard(
    "out-of-bounds",
    r"dimension 0 of a, which has 32: wmma_load_a_row of a\[32, 0\]",
    F16,
    thread=28,
)
def a_tile_beyond_the_matrix(a):
    wmma_load_a_row(a, 17, 0)  # fault


@hazard("misaligned", "tiles at multiples of 16 B; this one begins at byte 2 of a", F16)
def a_tile_at_an_odd_column(a):
    wmma_load_a_row(a, 0, 1)  # fault


@hazard(
    "misaligned", "rows as far apart; those of a are 40 B apart", np.zeros((16, 20), np.float16)
)
def a_tile_of_odd_rows(a):
    wmma_load_a_row(a, 0, 0)  # fault


@hazard("misaligned", "s begins at a multiple of 4 B: declare it with alignment=16", F32)
def a_tile_that_is_not_aligned(a):
    s = cuda.shared.array((16, 16), np.float32)
    for i in range(8):
        s[cuda.threadIdx.x // 2, cuda.threadIdx.x % 2 * 8 + i] = 0
    cuda.syncthreads()
    wmma_load_c_f32(s, 0, 0)  # fault


# ------------------------------------------------------------------------------- views and layouts


@refused("bytes -4 to 60 does not fit into shared_bytes=512", F32, compiled=None, shared_bytes=512)
def a_view_before_the_memory(a):
    shared_view((4, 4), np.float32, -4)  # fault


@refused("offset is 0.0 .float64.; use one number of bytes", F32,
         compiled="offset is float64, not a number of bytes", shared_bytes=512)  # fmt: skip
def a_view_at_a_float(a):
    shared_view((4, 4), np.float32, 0.0)  # fault


@refused("offset is a int64 of each thread", F32, compiled=None, shared_bytes=512)
def a_view_for_each_thread(a):
    shared_view((4, 4), np.float32, cuda.threadIdx.x * 4)  # fault


@refused("shape, dtype and offset, by position", F32, compiled="by position", shared_bytes=512)
def a_view_by_name(a):
    shared_view((4, 4), np.float32, offset=0)  # fault


@refused(
    r"shape=\(-1, 4\); use whole sizes",
    F32,
    compiled=r"shape=\(-1, 4\); use sizes of at least",
    shared_bytes=512,
)
def a_view_of_negative_size(a):
    shared_view((-1, 4), np.float32, 0)  # fault


@refused("element: register 8 of a fragment; use 0 to 7", F32, compiled="register 8 of a fragment")
def a_register_beyond(a):
    element(cuda.threadIdx.x, 8)  # fault


@refused(r"element takes 2 integers, not \(float64, int64\)", F32, compiled="takes 2 integers, not")
def a_float_lane(a):
    element(cuda.threadIdx.x / 2, 0)  # fault


@refused(r"holds takes 4 integers, not \(int64, int64\)", F32, compiled="holds takes 4 integers")
def holds_of_nothing(a):
    holds(cuda.threadIdx.x, 0)  # fault


each = pytest.mark.parametrize("case", CASES, ids=lambda case: case.kernel.__name__)


def line_at_fault(case: Misuse) -> int:
    code = case.kernel.__code__
    last = max(line for *_, line in code.co_lines() if line)
    numbers = range(code.co_firstlineno, last + 1)
    [line] = [n for n in numbers if "# fault" in linecache.getline(code.co_filename, n)]
    return line


@each
def test_the_simulator_names_line_thread_and_value(case):
    options = dict(case.options)
    threads = options.pop("threads", 32)
    arrays = [a.copy() for a in case.arrays]
    if case.refused:
        with pytest.raises((TypeError, ValueError, IndexError), match=case.refused) as found:
            simulate(case.kernel, 1, threads, *arrays, **options)
        assert re.match(f"line {line_at_fault(case)}: ", str(found.value))
        return
    first, *_ = simulate(case.kernel, 1, threads, *arrays, on_hazard="collect", **options).hazards
    assert first.kind == case.kind
    assert re.search(case.message, first.message)
    assert first.line == line_at_fault(case)
    assert first.threads[0] == (case.thread, 0, 0)


@each
@pytest.mark.ptxas
@pytest.mark.filterwarnings("ignore:.*Cannot store to pointer that points to constant memory")
def test_the_compiler_refuses_what_it_can_know(case, monkeypatch):
    dispatcher = pytest.importorskip("numba.cuda.dispatcher")
    standing_in = SimpleNamespace(compute_capability=(9, 0))
    monkeypatch.setattr(dispatcher, "get_current_device", lambda: standing_in)
    arguments = [(str(a.dtype).replace("bool", "boolean"), a.ndim) for a in case.arrays]
    if case.compiled is None:
        compiled(case.kernel, *arguments, cc=(9, 0))
        return
    with pytest.raises(Exception, match=case.compiled) as found:
        compiled(case.kernel, *arguments, cc=(9, 0))
    assert "NotImplemented" not in type(found.value).__name__


def test_the_table_has_every_fault_that_instructions_find():
    kinds = {"out-of-bounds", "misaligned", "async-not-waited", "divergent-barrier"}
    assert {case.kind for case in CASES} == kinds | {""}


# ------------------------------------------------------------------------------ what is not wrong


def used_rightly(a, b, n):
    s = cuda.shared.array((32, 8), np.float32, alignment=16)
    t = cuda.threadIdx.x
    cp_async_16(s, t, 0, a, t, 0, True)
    cp_async_16(s, t, 4, a, t + 100, 0, False)  # nothing is read
    cp_async_commit()
    cp_async_wait(63)  # more groups than there are: nothing to wait for
    a[t, 4] = np.nan  # not copied
    cp_async_wait(0)
    a[t, 1] = 0
    b[t, 0] = s[t, 1] + s[t, 5]
    d = mma_m16n8k8_f32_f16((0, 0), 0, (0, 0, 0, 1.5))
    store_v4(b, t, 4, (1, 2.5, np.float32(t), n))
    b[t, 1] = d[3]


def test_what_looks_wrong_and_is_right():
    b = np.full((32, 8), np.nan, np.float32)
    assert simulate(used_rightly, 1, 32, F32.copy(), b, 7, on_hazard="collect").hazards == []
    assert np.array_equal(b[:, 0], F32[:, 1])
    assert (b[:, 1] == 1.5).all()
    assert np.array_equal(b[:, 4:], [[1, 2.5, t, 7] for t in range(32)])


@pytest.mark.ptxas
def test_what_is_right_compiles():
    text = compiled(used_rightly, ("float32", 2), ("float32", 2), ("int64", 0))
    assert text.count("cp.async.cg") == 2


def on_an_old_gpu(a):
    s = cuda.shared.array((32, 8), np.float32, alignment=16)
    cp_async_16(s, cuda.threadIdx.x, 0, a, cuda.threadIdx.x, 0)


def matrices_stored(a):
    s = cuda.shared.array((32, 8), np.float16, alignment=16)
    stmatrix_x4(s, cuda.threadIdx.x, 0, WORDS)


@pytest.mark.parametrize(
    ("kernel", "gpu", "message"),
    [
        (
            on_an_old_gpu,
            "v100",
            "cp_async_16 needs compute capability 8.0 or more, this GPU has 7.0",
        ),
        (on_an_old_gpu, "t4", "this GPU has 7.5: NVIDIA T4"),
        (matrices_stored, "a100_80gb", "stmatrix_x4 needs compute capability 9.0 or more"),
    ],
)
def test_an_older_gpu_is_refused_with_its_name(kernel, gpu, message):
    with pytest.raises(UnsupportedError, match=message) as found:
        simulate(kernel, 1, 32, F32.copy(), device=gpu)
    assert f"line {kernel.__code__.co_firstlineno + 2}: " in str(found.value)


@pytest.mark.parametrize("lane", [0, 31, np.arange(32)])
def test_layouts_refuse_in_python_as_in_kernels(lane):
    assert np.array_equal(element(lane, 7), (lane // 4 + 8, lane % 4 * 2 + 9))
    with pytest.raises(IndexError, match="element: register 8 of a fragment; use 0 to 7"):
        element(lane, 8)
    with pytest.raises(IndexError, match="holds: register -1 of a fragment"):
        holds(lane, -1, 0, 0)
    with pytest.raises(TypeError, match=r"element takes 2 integers, not \(.*, float64\)"):
        element(lane, 0.5)
    with pytest.raises(TypeError, match="holds takes 4 integers, not "):
        holds(lane, 0)


def test_outside_of_a_kernel_there_is_no_instruction():
    for one in (instructions.load_v4, instructions.shared_view, instructions.cp_async_commit):
        with pytest.raises(RuntimeError, match="has a meaning only inside a kernel"):
            one()

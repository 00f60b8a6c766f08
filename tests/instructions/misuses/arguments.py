"""Wrong arguments of any sort, registers of a wrong type, views and layouts."""

import numpy as np

from gemmlab import cuda
from gemmlab.instructions import (
    cp_async_4,
    cp_async_commit,
    cp_async_wait,
    cvt_rn_f16_f32,
    cvt_rn_f16x2_f32,
    load_v2,
    load_v4,
    mma_m16n8k8_f32_f16,
    mma_m16n8k8_f32_tf32,
    mma_m16n8k16_f32_f16,
    shared_view,
    store_v4,
    unpack_f16x2,
    wmma_load_a_row,
    wmma_mma_row_col_f16,
    wmma_store_d_f16,
)
from tests.instructions.misuses.table import (
    F16,
    F32,
    F64,
    TABLE,
    WORD,
    WORDS,
    ZERO,
    ZEROS,
    element,
    holds,
    refused,
)

# ---------------------------------------------------------------------- wrong arguments of any sort


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


# -------------------------------------------------------------------------------- views and layouts


@refused("bytes -4 to 60 does not fit into shared_bytes=512", F32, compiled=None, shared_bytes=512)
def a_view_before_the_memory(a):
    shared_view((4, 4), np.float32, -4)  # fault


@refused("offset is 0.0 .float64.; use one number of bytes", F32,
         compiled="offset is float64, not a number of bytes", shared_bytes=512)  # fmt: skip
def a_view_at_a_float(a):
    shared_view((4, 4), np.float32, 0.0)  # fault


@refused("offset is an int64 of each thread", F32, compiled=None, shared_bytes=512)
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

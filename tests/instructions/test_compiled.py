"""Instructions compiled: text for the assembler, addresses, registers, errors of types."""

import re
import subprocess
from string import Formatter

import numpy as np
import pytest

from benchmarks.hardware.probes.instructions import INSTRUCTIONS, probe
from gemmlab import cuda, simulate
from gemmlab.device import architecture
from gemmlab.instructions import (
    cp_async_16,
    cp_async_wait,
    load_v2,
    load_v4,
    load_v8,
    shared_view,
    store_v4,
    wmma_load_a_row,
)
from gemmlab.simt import UnsupportedError
from tests.support.ptx import compiled

every_instruction = pytest.mark.parametrize("instruction", INSTRUCTIONS, ids=lambda x: x.name)


def views(A):
    first = shared_view((4, 32), np.float32, 0)
    second = shared_view((2, 32), np.int32, 512)
    t = cuda.threadIdx.x
    first[3, t] = A[t]
    second[1, t] = t
    cuda.syncthreads()
    A[t] = first[3, 31 - t] + second[1, t]


def least(instruction):
    return architecture(instruction.requires).capability


def compiled_probe(instruction, cc):
    one = probe(instruction)
    shapes = [(i.dtype, i.shape) for i in one.inputs] + [one.output]
    return compiled(one.kernel, *((dtype, 1 + len(shape)) for dtype, shape in shapes), cc=cc)


def text_of(instruction):
    """A pattern for the PTX that an instruction becomes."""
    loads = re.fullmatch(r"(ld|st)\.v(\d) .*", instruction.ptx)
    if loads:  # of LLVM's making: the space and the type are there; eight 16-bit numbers are four
        op, count = loads.groups()
        return rf"{op}\.shared\.v{min(4, int(count))}\.\w+"
    parts = Formatter().parse(instruction.ptx)
    return "".join(re.escape(text) + ("[^;]*?" if name else "") for text, name, *_ in parts)


@pytest.mark.ptxas
@every_instruction
def test_compiles_to_its_text_and_assembles_for_its_least_gpu(instruction, ptxas, tmp_path):
    cc = max(least(instruction), (7, 5))  # what the compiler still knows
    ptx = compiled_probe(instruction, cc)
    found = re.search(text_of(instruction), ptx)
    assert found, ptx
    if ".shared" in instruction.ptx:  # addresses of shared memory have 32 bits
        assert re.search(r"\[%r\d+\]", found[0])
    assert ".local" not in ptx
    (tmp_path / "kernel.ptx").write_text(ptx)
    command = [ptxas, f"-arch=sm_{cc[0]}{cc[1]}", "kernel.ptx", "-o", "kernel.cubin"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.ptxas
@pytest.mark.parametrize(
    "instruction", [x for x in INSTRUCTIONS if least(x) > (7, 5)], ids=lambda x: x.name
)
def test_a_lesser_gpu_is_refused_by_name(instruction):
    need = f"{instruction.name} needs compute capability {least(instruction)[0]}.0 or more"
    with pytest.raises(Exception, match=f"{need}, this GPU has 7.5"):
        compiled_probe(instruction, (7, 5))


def tiled_row(A, B, m):
    s = cuda.shared.array((2, 16, 64), np.float32, alignment=16)
    t = cuda.threadIdx.x
    for i in range(16):
        store_v4(s, 1, i, 4 * t, load_v4(A, cuda.blockIdx.x + i, 4 * t))
    cuda.syncthreads()
    for i in range(m):
        store_v4(B, t, 4 * i, load_v4(s, 1, 3, 4 * i))


@pytest.mark.ptxas
def test_vector_accesses_find_their_address_space_and_fold_constants():
    ptx = compiled(tiled_row, ("float32", 2), ("float32", 2), ("int32", 0))
    assert re.search(r"ld\.global\.v4\.f32", ptx)
    assert re.search(r"st\.global\.v4\.f32", ptx)
    stores = re.findall(r"st\.shared\.v4\.f32 \t\[(%\w+)\+(\d+)\]", ptx)
    assert {int(offset) for _, offset in stores} >= {4096 + 256 * i for i in range(1, 16)}
    assert len({register for register, _ in stores}) == 1
    assert "cvta.shared" not in ptx
    assert "cvta.to.shared" not in ptx
    loops = re.findall(r"(\$L__BB\d+_\d+):(.*?)bra", ptx, re.S)
    assert loops
    assert not any("cvta" in body or "mul.lo.s64" in body for _, body in loops)
    assert "setp.lt.s64" not in ptx  # no index wraps around


def rows_of_32_bits(A, B, i):
    row = np.int32(i + cuda.threadIdx.x)
    store_v4(B, row, 0, load_v4(A, row, 0))


def rows_of_64_bits(A, B, i):
    row = i + cuda.threadIdx.x
    store_v4(B, row, 0, load_v4(A, row, 0))


@pytest.mark.ptxas
def test_indices_of_32_bits_make_addresses_of_32_bits():
    arguments = ("float32", 2), ("float32", 2), ("int32", 0)
    narrow, wide = (compiled(k, *arguments) for k in (rows_of_32_bits, rows_of_64_bits))
    assert (narrow.count("mul.lo.s32"), narrow.count("mul.lo.s64")) == (2, 0)
    assert (wide.count("mul.lo.s32"), wide.count("mul.lo.s64")) == (0, 2)


def row_of_32_bits_without_sign(A, B, i):
    store_v4(B, i, 0, load_v4(A, i, 0))


@pytest.mark.ptxas
def test_an_index_beyond_31_bits_keeps_its_value():
    ptx = compiled(row_of_32_bits_without_sign, ("float32", 2), ("float32", 2), ("uint32", 0))
    assert ptx.count("mul.lo.s64") == 2
    assert not re.search(r"cvt\.s64\.s32|mul\.wide\.s32", ptx)


@pytest.mark.numba_cuda
@pytest.mark.ptxas
def test_how_much_of_a_copy_is_valid_is_told_in_bytes():
    def copy(A, valid):
        s = cuda.shared.array((32, 8), np.float16, alignment=16)
        t = cuda.threadIdx.x
        cp_async_16(s, t, 0, A, t, 0, valid)

    flag, count = (compiled(copy, ("float16", 2), (kind, 0)) for kind in ("boolean", "int32"))
    where_zero = r"setp\.eq\.s16 \t(%p\d+), %rs\d+, 0;.*selp\.b32 \t(%r\d+), 0, 16, \1;.*, 16, \2;"
    assert re.search(where_zero, flag, re.S)
    assert re.search(r"shl\.b32 \t(%r\d+), %r\d+, 1;.*cp\.async.*, 16, \1;", count, re.S)


@pytest.mark.numba_cuda
@pytest.mark.ptxas
def test_rows_of_a_tile_are_as_far_apart_as_those_of_its_array():
    def tiles(out):
        s = cuda.shared.array((32, 24), np.float16, alignment=32)
        a, b = wmma_load_a_row(s, 0, 8), wmma_load_a_row(s[::2], 0, 8)
        for i in range(8):
            out[i] = a[i] + b[i]

    ptx = compiled(tiles, ("uint32", 1))
    constants = dict(re.findall(r"mov\.u32 \t(%r\d+), (\d+);", ptx))
    strides = re.findall(r"wmma\.load.*, \[%rd\d+\], (%r\d+);", ptx)
    assert [constants[register] for register in strides] == ["24", "48"]


@pytest.mark.numba_cuda
@pytest.mark.ptxas
def test_neighbours_in_a_view_of_every_second_row_are_found():
    def kernel(A, B, i):
        store_v4(B, np.int32(0), 0, load_v4(A[::2], i, 0))

    ptx = compiled(kernel, ("float32", 2), ("float32", 2), ("int32", 0))
    once = compiled(rows_of_32_bits, ("float32", 2), ("float32", 2), ("int32", 0))
    step = re.search(r"ld\.param\.u(?:32|64) \t%\w+, \[\w+_param_7\];", ptx)  # A.strides[0]
    assert step
    assert "_param_7]" not in once


def accumulate(A, B):
    acc = cuda.local.array((2, 4), np.float32)
    for i in range(2):
        store_v4(acc, i, 0, load_v4(A, i, 0))
    for i in range(2):
        x = load_v4(acc, i, 0)
        for j in range(4):
            acc[1 - i, j] += x[j]
    store_v4(B, 0, 0, load_v4(acc, 0, 0))
    store_v4(B, 1, 0, load_v4(acc, 1, 0))


@pytest.mark.ptxas
def test_local_arrays_stay_in_registers():
    ptx = compiled(accumulate, ("float32", 2), ("float32", 2))
    assert ".local" not in ptx
    A, B = np.arange(8, dtype=np.float32).reshape(2, 4), np.zeros((2, 4), np.float32)
    simulate(accumulate, 1, 1, A, B)
    assert np.array_equal(B, [[*(2 * A[0] + A[1])], [*(A[0] + A[1])]])


@pytest.mark.ptxas
def test_a_view_compiles_to_nothing():
    ptx = compiled(views, ("float32", 1))
    assert "call" not in ptx
    assert re.findall(r"\.extern \.shared \.align 1024 \.b8 (\w+)\[\];", ptx)
    assert re.search(r"st\.shared\.f32 \t\[%\w+\+384\]", ptx)
    assert re.search(r"st\.shared\.u32 \t\[%\w+\+640\]", ptx)


@pytest.mark.ptxas
def test_errors_of_types_name_the_instruction():
    def wrong_count(A):
        load_v4(A, 0)

    def wide(A):
        load_v8(A, 0, 0)

    def narrow(A):
        s = cuda.shared.array((2, 2), np.uint8, alignment=16)
        load_v2(s, 0, 0)

    def variable(A):
        cp_async_wait(cuda.threadIdx.x)

    def mixed(A):
        s = cuda.shared.array((2, 2), np.float64, alignment=16)
        cp_async_16(s, 0, 0, A, 0, 0)

    def beyond(A):
        cp_async_wait(64)

    def columns(A):
        load_v4(A.T, 0, 0)

    for kernel, match in (
        (mixed, "copies between arrays of one type, not float32 and float64"),
        (beyond, "groups=64; use 0 to 63"),
        (columns, "the elements of a column-major array are no neighbours"),
        (wrong_count, "load_v4 takes more than 2 arguments"),
        (wide, "load_v8 would access 32 bytes of an array of float32"),
        (narrow, "load_v2 would access 2 bytes of an array of uint8"),
        (variable, "groups must be a constant"),
    ):
        with pytest.raises(Exception, match=match):
            compiled(kernel, ("float32", 2))


@pytest.mark.ptxas
def test_constants_must_be_constants_in_the_simulator_too():
    stages = 3

    def wait(A):
        cp_async_wait(stages - 2)

    def view(A):
        shared_view((A.shape[0], 4), np.float32, 0)

    with pytest.raises(UnsupportedError, match=r"cp_async_wait of stages - 2 .*constants"):
        simulate(wait, 1, 1, np.zeros(1))
    with pytest.raises(UnsupportedError, match=r"shared_view of a shape with A.shape\[0\]"):
        simulate(view, 1, 1, np.zeros(1))
    for kernel in (wait, view):
        with pytest.raises(Exception, match=r"constant"):
            compiled(kernel, ("float32", 1))

"""Instructions: their PTX, what they refuse, and what they do on the simulator."""

import json
import re
import subprocess
import sys
import zlib
from string import Formatter

import numpy as np
import pytest

from gemmlab import cuda, device, instructions, simulate
from gemmlab.instructions import (
    cp_async_16,
    cp_async_commit,
    cp_async_wait,
    cvt_rn_f16x2_f32,
    fragments,
    ldmatrix_x2,
    ldmatrix_x4,
    load_v2,
    load_v4,
    load_v8,
    mma_m16n8k16_f32_f16,
    shared_view,
    store_v4,
    wmma_load_a_row,
    wmma_load_c_f32,
    wmma_store_d_f32,
)
from gemmlab.instructions.instruction import HELD_AS, Memory, Registers
from gemmlab.simt import UnsupportedError
from tests.hardware.instruction_probes import INSTRUCTIONS, KINDS, probe
from tests.hardware.ptx import compiled
from tests.support.paths import DATA, ROOT

HARDWARE = DATA / "h200_instructions.npz"
every_instruction = pytest.mark.parametrize("instruction", INSTRUCTIONS, ids=lambda x: x.name)


# -------------------------------------------------------------------------------------- declared


def test_each_is_exported_by_its_name():
    assert len({x.name for x in INSTRUCTIONS}) == len(INSTRUCTIONS) >= 61
    for x in INSTRUCTIONS:
        assert getattr(instructions, x.name) is x
        assert x.name in instructions.__all__
        with pytest.raises(RuntimeError, match=f"{x.name} has a meaning only inside a kernel"):
            x()


# Typed a second time from the PTX ISA 9.0, "Target ISA Notes" of each; the first that fits counts.
LEAST = {
    "load": (5, 0), "store": (5, 0), "cp_async": (8, 0), "ldmatrix": (7, 5), "stmatrix": (9, 0),
    "mma_m8n8k4": (7, 0), "mma_m16n8k8_f32_f16": (7, 5), "mma_m16n8k8_f16_f16": (7, 5),
    "mma": (8, 0), "wmma": (7, 0), "cvt_rn_f16_": (5, 3), "cvt_rz_f16_": (5, 3),
    "cvt_rn_tf32": (9, 0), "cvt_rz_tf32": (9, 0), "cvt": (8, 0), "pack": (5, 3), "unpack": (5, 3),
}  # fmt: skip


@every_instruction
def test_requires_what_the_manual_says(instruction):
    assert instruction.requires == next(
        least for start, least in LEAST.items() if instruction.name.startswith(start)
    )


def text_by_the_manual(name):
    """How an instruction's text begins, from its name and the grammar of the PTX ISA."""
    kind, *rest = name.split("_")
    match kind, rest:
        case "load" | "store", [count]:
            return f"{'ld' if kind == 'load' else 'st'}.{count} "
        case "cp", [_, "commit" | "wait" as what]:
            return f"cp.async.{what}_group"
        case "cp", [_, size]:
            return f"cp.async.{'cg' if size == '16' else 'ca'}.shared.global "
        case "ldmatrix" | "stmatrix", _:
            return f"{kind}.sync.aligned.m8n8.{'.'.join(rest)}.shared.b16 "
        case "mma", [shape, *order, d, a]:
            order = ".".join(order or ("row", "col"))
            return f"mma.sync.aligned.{shape}.{order}.{d}.{a}.{a}.{d} {{{{{{d}}}}}}, {{{{{{a}}}}}},"
        case "wmma", ["mma", a, b, d]:
            return f"wmma.mma.sync.aligned.{a}.{b}.m16n16k16.{d}.{d} {{{{{{d}}}}}}, {{{{{{a}}}}}},"
        case "wmma", [access, operand, which]:
            major, form = ("row", which) if operand in "cd" else (which, "f16")
            return f"wmma.{access}.{operand}.sync.aligned.{major}.m16n16k16.{form} "
    return f"{name.replace('_', '.')} "


@every_instruction
def test_its_text_is_what_its_name_says(instruction):
    if "pack" not in instruction.name:  # of several instructions: below
        assert instruction.ptx.startswith(text_by_the_manual(instruction.name))


def test_importing_them_loads_no_numba():
    code = "import gemmlab.instructions, sys; print('numba' in sys.modules)"
    answer = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == "False"


# -------------------------------------------------------------------------------------- compiled


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
    cc = max(instruction.requires, (7, 5))  # what the compiler still knows
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
    "instruction", [x for x in INSTRUCTIONS if x.requires > (7, 5)], ids=lambda x: x.name
)
def test_a_lesser_gpu_is_refused_by_name(instruction):
    need = f"{instruction.name} needs compute capability {instruction.requires[0]}.0 or more"
    with pytest.raises(Exception, match=f"{need}, this GPU has 7.5"):
        compiled_probe(instruction, (7, 5))


@every_instruction
def test_a_lesser_gpu_is_refused_in_the_simulator(instruction):
    lesser = [n for n in ("v100", "t4", "a100_80gb")
              if device(n).compute_capability < instruction.requires]  # fmt: skip
    one = probe(instruction)
    for gpu in lesser:
        with pytest.raises(UnsupportedError, match=f"{instruction.name} needs compute capability"):
            simulate(one.kernel, 1, 32, *one.arguments(1, "normal"), device=gpu)
    simulate(one.kernel, 1, 32, *one.arguments(1, "normal"), device="h200")


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


def views(A):
    first = shared_view((4, 32), np.float32, 0)
    second = shared_view((2, 32), np.int32, 512)
    t = cuda.threadIdx.x
    first[3, t] = A[t]
    second[1, t] = t
    cuda.syncthreads()
    A[t] = first[3, 31 - t] + second[1, t]


@pytest.mark.ptxas
def test_a_view_compiles_to_nothing():
    ptx = compiled(views, ("float32", 1))
    assert "call" not in ptx
    assert re.findall(r"\.extern \.shared \.align 1024 \.b8 (\w+)\[\];", ptx)
    assert re.search(r"st\.shared\.f32 \t\[%\w+\+384\]", ptx)
    assert re.search(r"st\.shared\.u32 \t\[%\w+\+640\]", ptx)


def test_a_view_is_simulated():
    A = np.arange(32, dtype=np.float32)
    simulate(views, 1, 32, A, shared_bytes=512 + 256)
    assert (A == 31).all()
    with pytest.raises(ValueError, match="bytes 512 to 768 does not fit into shared_bytes=600"):
        simulate(views, 1, 32, A, shared_bytes=600)
    with pytest.raises(ValueError, match="does not fit into shared_bytes=767"):
        simulate(views, 1, 32, A, shared_bytes=767)


def test_a_view_is_aligned_as_its_offset_is():
    def at_16(A):
        store_v4(shared_view((32, 4), np.float32, 16), cuda.threadIdx.x, 0, load_v4(A, 0, 0))

    def at_8(A):
        store_v4(shared_view((32, 4), np.float32, 8), cuda.threadIdx.x, 0, load_v4(A, 0, 0))

    def at_2(A):
        shared_view((32, 4), np.float32, 2)[0, 0] = A[0, 0]

    A = np.zeros((1, 4), np.float32)
    assert hazards(at_16, A, shared_bytes=1024) == []
    [found] = hazards(at_8, A, shared_bytes=1024)
    assert found.kind == "misaligned"
    with pytest.raises(ValueError, match="does not begin at an element"):
        simulate(at_2, 1, 32, A, shared_bytes=1024)


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


# ------------------------------------------------------------------------------------- simulated


@every_instruction
def test_every_probe_runs_without_a_hazard(instruction):
    one = probe(instruction)
    for kind in KINDS:
        report = simulate(one.kernel, 3, 32, *one.arguments(3, kind))
        assert report.hazards == []
        assert report.instructions["inst_executed"] > 0


@every_instruction
def test_every_probe_is_given_what_its_operands_hold(instruction):
    """No conversion comes between: one of a negative float32 to uint32 has no meaning."""
    one = probe(instruction)
    declared = [x for x in instruction.operands if isinstance(x, Registers)]
    by_name = {i.name: i for i in one.inputs}
    for operand in declared:
        held = HELD_AS.get(operand.dtype, one.output[0])
        assert by_name[operand.name].dtype == held
    for kind in KINDS:
        *inputs, _ = one.arguments(2, kind)
        assert [a.dtype for a in inputs] == [i.dtype for i in one.inputs]
        assert [a.shape for a in inputs] == [(2, *i.shape) for i in one.inputs]


def test_extreme_operands_are_extreme():
    x = probe(instructions.cvt_rna_tf32_f32).arguments(500, "edges")[0].ravel()
    fraction, dropped = x.view(np.uint32) & 0x7FFFFF, x.view(np.uint32) & 0x1FFF
    for some in (
        np.isnan(x),
        np.isinf(x),
        np.isnan(x) & (fraction == dropped),
        x == 0,
        (x != 0) & (abs(x) < np.finfo(np.float32).tiny),
        dropped == 0x1000,
        dropped == 0x1FFF,
    ):
        assert 20 < some.sum() < len(x) / 2


@every_instruction
def test_the_meaning_is_what_the_hardware_answered(instruction):
    if not HARDWARE.exists():
        pytest.skip(f"{HARDWARE.name} is not there: record it on a GPU")
    answers = np.load(HARDWARE)
    one = probe(instruction)
    if not one.inputs:
        pytest.skip(f"{instruction.name} has no result of its own; the copies' probes have it")
    for kind in KINDS:
        expected = answers[f"{instruction.name}/{kind}"]
        arguments = one.arguments(len(expected), kind)
        given = zlib.crc32(b"".join(a.tobytes() for a in arguments[:-1]))
        assert given == answers[f"{instruction.name}/{kind}/inputs"], "the GPU had other operands"
        simulate(one.kernel, len(expected), 32, *arguments, device="h200")
        result = arguments[-1]
        assert np.array_equal(result.view(f"u{result.itemsize}"), expected)


def test_the_hardware_was_given_the_text_that_is_here():
    recorded = map(json.loads, HARDWARE.with_suffix(".jsonl").read_text("utf-8").splitlines())
    given = {record["task"]: record["ptx"] for record in recorded if "ptx" in record}
    here = {x.name: x.ptx for x in INSTRUCTIONS if probe(x).inputs}
    assert given == here


@pytest.mark.gpu
@every_instruction
def test_gpu_and_simulator_agree_to_the_bit(instruction):
    from numba import cuda as numba_cuda

    from gemmlab import detect

    gpu = detect()
    if instruction.refusal(gpu.compute_capability):
        pytest.skip(instruction.refusal(gpu.compute_capability))
    one = probe(instruction)
    for kind in KINDS:
        arguments = one.arguments(16, kind)
        on_gpu = [numba_cuda.to_device(a) for a in arguments]
        numba_cuda.jit(one.kernel)[16, 32](*on_gpu)
        simulate(one.kernel, 16, 32, *arguments, device=gpu)
        answer, result = on_gpu[-1].copy_to_host(), arguments[-1]
        words = f"u{result.itemsize}"
        assert np.array_equal(answer.view(words), result.view(words))


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("trans", ["", "_trans"])
def test_matrices_go_to_registers_and_back_as_the_manual_says(count, trans):
    load = probe(getattr(instructions, f"ldmatrix_x{count}{trans}"))
    rows, at = np.arange(256, dtype=np.uint16).reshape(1, 32, 8), np.arange(31, -1, -1)
    words = np.zeros((1, 32, count), np.uint32)
    arguments = {"rows": rows, "at": at.astype(np.int32).reshape(1, 32)}
    simulate(load.kernel, 1, 32, *(arguments[i.name] for i in load.inputs), words)
    for lane in range(32):
        for m in range(count):
            matrix = rows[0, at[8 * m : 8 * m + 8]]
            if trans:
                matrix = matrix.T
            low, high = matrix[lane // 4, lane % 4 * 2 : lane % 4 * 2 + 2].tolist()
            assert words[0, lane, m] == low | high << 16

    store = probe(getattr(instructions, f"stmatrix_x{count}{trans}"))
    back = np.zeros((1, 32, 8), np.uint16)
    arguments["values"] = words
    simulate(store.kernel, 1, 32, *(arguments[i.name] for i in store.inputs), back)
    used = at[: 8 * count]
    assert np.array_equal(back[0, used], rows[0, used])


def test_the_first_of_a_pair_is_the_low_half():
    for name in ("pack_f16x2", "unpack_f16x2"):  # PTX: the first of a vector is the low half
        text = getattr(instructions, name).ptx
        assert re.search(r"mov\.b32 (\{d\}, \{\{low, high\}\}|\{\{low, high\}\}, \{word\});", text)
    for name in ("unpack_f16x2", "unpack_bf16x2"):
        text = getattr(instructions, name).ptx
        assert re.search(r" \{d0\}, low; .* \{d1\}, high;", text)
    assert "shl.b32 low, {word}, 16; and.b32 high, {word}, 0xffff0000;" in text
    for x in (instructions.cvt_rn_f16x2_f32, instructions.cvt_rz_bf16x2_f32):
        assert x.ptx.endswith("{d}, {high}, {low}")  # in PTX the first source is the upper half
        assert [o.name for o in x.operands] == ["low", "high"]


@pytest.mark.parametrize(
    ("given", "rna", "others"),
    [
        (0x7FC00000, 0x7FC00000, 0x7FFFE000),
        (0xFFBD5555, 0xFFBD4000, 0x7FFFE000),
        (0x7F800001, 0x7F800000, 0x7FFFE000),
        (0xFFFFFFFF, 0xFFFFE000, 0x7FFFE000),
        (0x7F7FF000, 0x7F800000, None),
        (0xFF800000, 0xFF800000, 0xFF800000),
    ],
)
def test_what_becomes_of_nan_and_infinity_in_tf32(given, rna, others):
    """RNA adds half a unit to what is finite and cuts; the others have a NaN of their own."""
    x = np.full((1, 32, 1), given, np.uint32).view(np.float32)
    for rounding, expected in (("rna", rna), ("rn", others), ("rz", others)):
        if expected is not None:
            one = probe(getattr(instructions, f"cvt_{rounding}_tf32_f32"))
            out = np.zeros((1, 32, 1), np.float32)
            simulate(one.kernel, 1, 32, x, out)
            assert (out.view(np.uint32) == expected).all()


@pytest.mark.parametrize("name", ["wmma_mma_row_col_f32", "wmma_mma_col_row_f16"])
def test_wmma_reads_the_lower_half_of_its_registers_alone(name):
    one = probe(getattr(instructions, name))
    a, b, c, d = one.arguments(2, "normal")
    simulate(one.kernel, 2, 32, a, b, c, d, device="h200")
    expected = d.copy()
    a[..., 4:], b[..., 4:] = 0x7FFF7FFF, 0
    simulate(one.kernel, 2, 32, a, b, c, d, device="h200")
    assert np.array_equal(d.view(np.uint32), expected.view(np.uint32))


def test_conversions_round_as_numpy_does():
    x = np.float32([1 + 2**-11, 1 + 3 * 2**-11, 65519.9, 65520, 2**-25, -0.1, np.inf, -0.0])

    def convert(x, out):
        t = cuda.threadIdx.x
        out[t] = cvt_rn_f16x2_f32(x[t], x[t] * np.float32(2))

    out = np.zeros(len(x), np.uint32)
    simulate(convert, 1, len(x), x, out)
    with np.errstate(over="ignore"):
        once, twice = x.astype(np.float16), (2 * x).astype(np.float16)
    assert np.array_equal((out & 0xFFFF).astype(np.uint16).view(np.float16), once)
    assert np.array_equal((out >> 16).astype(np.uint16).view(np.float16), twice)


element_of_c = fragments.layout("m16n8k16", "C").element


def warp_gemm(A, B, C):
    """C (16×8) = A (16×k) · Bᵀ (8×k): one warp, `ldmatrix` and `mma`."""
    lane = cuda.threadIdx.x
    a = cuda.shared.array((16, 72), np.float16, alignment=16)  # rows 9·16 bytes apart: no conflicts
    b = cuda.shared.array((8, 72), np.float16, alignment=16)
    d = (np.float32(0), np.float32(0), np.float32(0), np.float32(0))
    for start in range(0, A.shape[1], 64):
        for v in range(lane, 16 * 8, 32):
            cp_async_16(a, v // 8, v % 8 * 8, A, v // 8, start + v % 8 * 8)
        for v in range(lane, 8 * 8, 32):
            cp_async_16(b, v // 8, v % 8 * 8, B, v // 8, start + v % 8 * 8)
        cp_async_commit()
        cp_async_wait(0)
        cuda.syncthreads()
        for k in range(0, 64, 16):
            fa = ldmatrix_x4(a, lane % 16, k + lane // 16 * 8)
            fb = ldmatrix_x2(b, lane % 8, k + lane // 8 % 2 * 8)
            d = mma_m16n8k16_f32_f16(fa, fb, d)
        cuda.syncthreads()
    for x in range(4):
        i, j = element_of_c(lane, x)
        C[i, j] = d[x]


def test_gemm_of_one_warp():
    rng = np.random.default_rng(0)
    A = rng.integers(-8, 8, (16, 256)).astype(np.float16)
    B = rng.integers(-8, 8, (8, 256)).astype(np.float16)
    C = np.full((16, 8), np.nan, np.float32)
    report = simulate(warp_gemm, 1, 32, A, B, C)
    assert np.array_equal(C, A.astype(np.float32) @ B.T.astype(np.float32))
    assert report.instructions["inst_mma"] == 256 // 16
    assert report.instructions["inst_ldmatrix"] == 2 * 256 // 16
    assert report.instructions["inst_async_copy"] == 6 * 256 // 64
    # ldmatrix takes a wavefront for each 8×8 matrix: four of A and two of B.
    assert report.counters["shared_load_wavefronts"] == 6 * 256 // 16
    assert report.counters["shared_bank_conflicts"] == 0
    assert report.counters["global_load_sectors"] == (A.nbytes + B.nbytes) // 32


@pytest.mark.ptxas
def test_it_compiles():
    matrix = ("float16", 2)
    ptx = compiled(warp_gemm, matrix, matrix, ("float32", 2))
    assert ".local" not in ptx
    assert "call" not in ptx


# ---------------------------------------------------------------------------------------- counted


def strided(A, B, stride, column):
    s = cuda.shared.array((32, 64), np.float32, alignment=16)
    t = cuda.threadIdx.x
    for i in range(32):
        store_v2_of(s, i, t)
    cuda.syncthreads()
    store_v4(B, t, 0, load_v4(A, t * stride, 0))
    load_v4(s, t // 16 * (1 - column) + t * column, t % 16 * 4 * (1 - column))


def store_v2_of(s, i, t):
    s[i, 2 * t] = 1
    s[i, 2 * t + 1] = 1


@pytest.mark.parametrize(("stride", "sectors"), [(1, 16), (2, 32), (8, 32)])
def test_a_wide_access_is_one_request(stride, sectors):
    A, B = np.zeros((256, 4), np.float32), np.zeros((32, 4), np.float32)
    report = simulate(strided, 1, 32, A, B, stride, 0)
    assert report.counters["global_load_requests"] == 1
    assert report.counters["global_load_sectors"] == sectors
    assert report.counters["global_load_bytes"] == 32 * 16
    assert report.counters["global_store_sectors"] == 16
    assert report.instructions["inst_global_load"] == 1


def test_a_wide_shared_access_takes_a_quarter_warp_at_a_time():
    A, B = np.zeros((32, 4), np.float32), np.zeros((32, 4), np.float32)
    rows, column = (simulate(strided, 1, 32, A, B, 1, c).counters for c in (0, 1))
    assert rows["shared_load_requests"] == column["shared_load_requests"] == 1
    assert rows["shared_load_wavefronts"] == 4  # 32 × 16 B, 128 B at a time
    assert column["shared_load_wavefronts"] == 32  # all lanes begin at bank 0


# ---------------------------------------------------------------------------------------- hazards


def hazards(kernel, *args, threads=32, **options):
    return simulate(kernel, 1, threads, *args, on_hazard="collect", **options).hazards


def placed(A, B, row, column):
    t = cuda.threadIdx.x
    B[t, 0] = load_v4(A, row, column)[0] if t == 5 else np.float32(0)


@pytest.mark.parametrize(
    ("row", "column", "kind", "text"),
    [
        (0, 1, "misaligned", "thread (5) accesses byte 4 of A; load_v4 needs a multiple of 16"),
        (0, 2, "misaligned", "thread (5) accesses byte 8 of A; load_v4 needs a multiple of 16"),
        (0, 8, "out-of-bounds", "A[…, 8…11] is outside, its dimension 1 has 8 elements"),
        (4, 0, "out-of-bounds", "A[4, …] is outside, its dimension 0 has 4 elements"),
        (-1, 0, "out-of-bounds", "A[-1, …] is outside, its dimension 0 has 4 elements"),
    ],
)
def test_wrong_places_name_line_and_thread(row, column, kind, text):
    A, B = np.zeros((4, 8), np.float32), np.zeros((32, 1), np.float32)
    [found] = hazards(placed, A, B, row, column)
    assert found.kind == kind
    assert text in found.message
    assert found.threads == ((5, 0, 0),)
    assert found.code.startswith("B[t, 0] = load_v4(A")


NOTHING = (np.float32(0), np.float32(0), np.float32(0), np.float32(0))


def guarded(A, B):
    t = cuda.threadIdx.x
    store_v4(B, t, 0, load_v4(A, t, 0) if t < A.shape[0] else NOTHING)


def test_a_load_can_be_one_branch_of_a_choice():
    A, B = np.ones((20, 4), np.float32), np.full((32, 4), np.nan, np.float32)
    report = simulate(guarded, 1, 32, A, B)
    assert (B[:20] == 1).all()
    assert (B[20:] == 0).all()
    assert report.counters["global_load_bytes"] == A.nbytes


def careless(B):
    s = cuda.shared.array((32, 4), np.float32)
    s[cuda.threadIdx.x, 0] = 1
    load_v2(s, 0, 0)


def test_a_shared_array_must_be_aligned_on_purpose():
    [found] = hazards(careless, np.zeros(1, np.float32), threads=1)[:1]
    assert found.kind == "misaligned"
    assert "declare it with alignment=8" in found.message


def tile_at(A, B, row, column):
    d = wmma_load_c_f32(A, row, column)
    wmma_store_d_f32(B, 0, 0, d)


@pytest.mark.parametrize(
    ("row", "column", "axis"), [(0, 8, None), (1, 8, 0), (-1, 8, 0), (0, 16, 1), (0, -8, 1)]
)
def test_a_tile_lies_inside_its_array(row, column, axis):
    A, B = np.ones((16, 24), np.float32), np.zeros((16, 16), np.float32)
    report = simulate(tile_at, 1, 32, A, B, row, column, on_hazard="collect")
    if axis is None:
        assert report.hazards == []
        assert report.counters["global_load_bytes"] == B.nbytes
        assert report.counters["global_store_bytes"] == B.nbytes
        return
    assert {h.kind for h in report.hazards} == {"out-of-bounds"}
    text = f"a tile reaches beyond dimension {axis} of A, which has {A.shape[axis]}"
    assert all(text in h.message for h in report.hazards)


def half_a_warp(A, B):
    t = cuda.threadIdx.x
    z = np.float32(0)
    if t < 16:
        d = mma_m16n8k16_f32_f16((A[t], A[t], A[t], A[t]), (A[t], A[t]), (z, z, z, z))
        B[t] = d[0]


def test_a_warp_instruction_needs_the_whole_warp():
    [found] = hazards(half_a_warp, np.zeros(32, np.uint32), np.zeros(32, np.float32))
    assert found.kind == "divergent-barrier"
    assert found.threads == ((0, 0, 0), (16, 0, 0))
    assert "thread (16) does not get here" in found.message


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


def test_memory_operands_say_how_wide_they_are():
    for x in INSTRUCTIONS:
        for operand in x.operands:
            if isinstance(operand, Memory):
                assert operand.width(2) in (4, 8, 16)


@pytest.mark.parametrize(("load", "passes"), [(load_v4, 2), (ldmatrix_x4, 4)])
def test_a_traced_access_takes_the_wavefronts_that_are_counted(load, passes):
    """Lanes that ask for the same 16 bytes are served together; rows that they point at are not."""

    def kernel(out):
        tile = cuda.shared.array((1, 8), np.float32, alignment=16)
        lane = cuda.threadIdx.x
        if lane < 8:
            tile[0, lane] = lane
        cuda.syncwarp()
        v = load(tile, 0, 0)  # traced
        out[lane] = v[0]

    report = simulate(kernel, 1, 32, np.zeros(32, np.float32), trace="# traced")
    (access,) = (a for a in report.trace if a.space == "shared")
    assert int(access.wavefronts.sum()) == passes == len(access.groups(0))
    assert report.counters["shared_load_wavefronts"] == passes

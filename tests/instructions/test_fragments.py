"""Layouts: each covers its matrices as often as it says, and is what the manuals' formulas give."""

import re

import numpy as np
import pytest

from benchmarks.hardware.probes.layouts import read_layout
from gemmlab import cuda, simulate
from gemmlab.instructions.fragments import LAYOUTS, Layout, layout
from tests.support.ptx import compiled


def name(form: Layout) -> str:
    return " ".join(
        (form.instruction, form.operand, *form.formats, *form.where.split(), form.major)
    )


every_layout = pytest.mark.parametrize("form", LAYOUTS, ids=name)


@every_layout
def test_covers_each_element_with_the_stated_copies(form):
    rows, cols = form.shape
    held = np.zeros((form.matrices, rows, cols), int)
    for lane in range(32):
        for register in range(form.registers):
            i, j = form.element(lane, register)
            held[form.matrix(lane, register), i, j] += 1
    assert (held == form.copies).all()
    assert held.sum() == 32 * form.registers


# (row, column) of register x of a lane, as the PTX manual writes it: g = lane // 4, t = lane % 4.
# WMMA's are those of H. Ootomo's wmma_extension, from bits b of the lane, and r = lane % 4.
def b(lane, n):
    return lane >> n & 1


MANUAL = {
    "m16n8k16 A f16 bf16": lambda g, t, x, _: (g + 8 * (x >> 1 & 1), 2 * t + x % 2 + 8 * (x >> 2)),
    "m16n8k16 B f16 bf16": lambda g, t, x, _: (2 * t + x % 2 + 8 * (x >> 1), g),
    "m16n8k16 C f32 f16": lambda g, t, x, _: (g + 8 * (x >> 1), 2 * t + x % 2),
    "m16n8k8 A f16 bf16": lambda g, t, x, _: (g + 8 * (x >> 1), 2 * t + x % 2),
    "m16n8k8 B f16 bf16": lambda g, t, x, _: (2 * t + x, g),
    "m16n8k8 C f32 f16": lambda g, t, x, _: (g + 8 * (x >> 1), 2 * t + x % 2),
    "m16n8k8 A tf32": lambda g, t, x, _: (g + 8 * (x % 2), t + 4 * (x >> 1)),
    "m16n8k8 B tf32": lambda g, t, x, _: (t + 4 * x, g),
    "m16n8k4 A tf32": lambda g, t, x, _: (g + 8 * x, t),
    "m16n8k4 B tf32": lambda g, t, x, _: (t, g),
    "m16n8k4 C f32": lambda g, t, x, _: (g + 8 * (x >> 1), 2 * t + x % 2),
    "m8n8k4 A f16 row": lambda g, t, x, n: (t + 4 * (n >> 4), x),
    "m8n8k4 A f16 col": lambda g, t, x, n: (x + 4 * (n >> 4), t),
    "m8n8k4 B f16 col": lambda g, t, x, n: (x, t + 4 * (n >> 4)),
    "m8n8k4 B f16 row": lambda g, t, x, n: (t, x + 4 * (n >> 4)),
    "m8n8k4 C f16": lambda g, t, x, n: (t + 4 * (n >> 4), x),
    "m8n8k4 C f32": lambda g, t, x, n: (
        t % 2 + (x & 2) + 4 * (n >> 4), (x & 4) + (t & 2) + x % 2,
    ),
    "wmma.m16n16k16 A f16 sm_70 row": lambda g, t, x, n: (t + 8 * b(n, 2) + 4 * b(n, 4), x),
    "wmma.m16n16k16 A f16 sm_70 col": lambda g, t, x, n: (
        8 * b(n, 2) + 4 * b(n, 4) + x % 4, t + (x & 12),
    ),
    "wmma.m16n16k16 B f16 sm_70 col": lambda g, t, x, n: (x, t + 8 * b(n, 3) + 4 * b(n, 4)),
    "wmma.m16n16k16 B f16 sm_70 row": lambda g, t, x, n: (
        t + (x & 12), 8 * b(n, 3) + 4 * b(n, 4) + x % 4,
    ),
    "wmma.m16n16k16 C f16 sm_70": lambda g, t, x, n: (
        t + 8 * b(n, 2) + 4 * b(n, 4), x + 8 * b(n, 3),
    ),
    "wmma.m16n16k16 C f32 sm_70": lambda g, t, x, n: (
        b(n, 0) + 8 * b(n, 2) + 4 * b(n, 4) + 2 * (x >> 1 & 1),
        2 * b(n, 1) + 8 * b(n, 3) + x % 2 + 4 * (x >> 2),
    ),
    "wmma.m16n16k16 A f16 sm_75 and newer": lambda g, t, x, _: (
        g + 8 * (x >> 1 & 1), 2 * t + x % 2 + 8 * (x >> 2 & 1),
    ),
    "wmma.m16n16k16 B f16 sm_75 and newer": lambda g, t, x, _: (
        2 * t + x % 2 + 8 * (x >> 1 & 1), g + 8 * (x >> 2 & 1),
    ),
    "wmma.m16n16k16 C f32 f16 sm_75 and newer": lambda g, t, x, _: (
        g + 8 * (x >> 1 & 1), 2 * t + x % 2 + 8 * (x >> 2),
    ),
    **{f"ldmatrix.x{n} A b16": lambda g, t, x, _: (g, 2 * t + x % 2) for n in (1, 2, 4)},
    **{f"ldmatrix.x{n}.trans A b16": lambda g, t, x, _: (2 * t + x % 2, g) for n in (1, 2, 4)},
}  # fmt: skip


@every_layout
def test_is_what_the_manual_says(form):
    formula = MANUAL[name(form).strip()]
    for lane in range(32):
        for x in range(form.registers):
            assert form.element(lane, x) == formula(lane // 4, lane % 4, x, lane), (lane, x)


@every_layout
def test_the_way_of_reading_it_finds_what_the_simulator_has(form):
    gpu = "v100" if form.last == "sm_70" else "h200"

    def launch(kernel, arguments):
        simulate(kernel, len(arguments[0]), 32, *arguments, device=gpu)
        return arguments[-1]

    def elsewhere(kernel, arguments):
        return np.roll(launch(kernel, arguments), 1, axis=1)

    assert np.array_equal(read_layout(form, launch), form.table)
    if form.operand == "C" or not form.instruction.startswith("m"):  # A and B are told from many
        assert not np.array_equal(read_layout(form, elsewhere), form.table)


@every_layout
def test_of_copies_the_first_counts(form):
    fragment = np.arange(32 * form.registers).reshape(32, form.registers)
    matrices = form.gather(fragment)
    for i, j, lanes, registers in form.foreach_ij():
        every = fragment[list(lanes), list(registers)].reshape(-1)
        firsts = sorted(every)[: form.matrices] if form.matrices == 1 else set(every)
        assert set(matrices[:, i, j]) == set(firsts)


def test_manual_has_no_other_layout():
    assert set(MANUAL) == {name(form).strip() for form in LAYOUTS}


@every_layout
def test_map_and_foreach_give_all_places_and_only_those(form):
    seen = []
    for i, j, lanes, registers in form.foreach_ij():
        assert len(lanes) == len(registers) == form.copies * form.matrices
        for lane, register in zip(lanes, registers, strict=True):
            assert form.element(lane, register) == (i, j)
            assert form.holds(lane, register, i, j)
            assert not form.holds(lane, register, i + 1, j)
            seen.append((lane, register))
    assert len(set(seen)) == len(seen) == 32 * form.registers


@every_layout
def test_gather_undoes_scatter(form):
    matrix = np.arange(2 * form.matrices * np.prod(form.shape)).reshape(
        2, form.matrices, *form.shape
    )
    fragment = form.scatter(matrix)
    assert fragment.shape == (2, 32, form.registers)
    assert np.array_equal(form.gather(fragment), matrix)


def test_m8n8k4_is_four_matrices():
    form = layout("m8n8k4", "C", "f32")
    assert form.matrices == 4
    lanes = [lane for lane in range(32) if form.matrix(lane, 0) == 1]
    assert lanes == [4, 5, 6, 7, 20, 21, 22, 23]  # PTX: the second MMA's threads


def test_refusals():
    for i, j in ((16, 0), (0, 16), (-1, 0), (0, -1)):
        outside = re.escape(f"element ({i}, {j}) is outside; the matrix is 16×16")
        with pytest.raises(IndexError, match=outside):
            layout("m16n8k16", "A").map(i, j)
    with pytest.raises(
        ValueError, match=r"'A' tf32 of 'm16n8k16' on sm_80; there are A f16/bf16, B"
    ):
        layout("m16n8k16", "A", "tf32")
    with pytest.raises(ValueError, match="m16n8k32.*m16n8k16"):
        layout("m16n8k32", "A")
    with pytest.raises(ValueError, match="arch='sm_1' is not known; use one of sm_50, .*sm_90"):
        layout("m16n8k16", "A", arch="sm_1")
    with pytest.raises(
        ValueError, match=r"on sm_72; there are A f16 sm_70, .*A f16 sm_75 and newer"
    ):
        layout("wmma.m16n16k16", "A", arch="sm_72")


def test_volta_keeps_what_turing_does_not():
    volta, turing = (layout("wmma.m16n16k16", "A", arch=a, major="row") for a in ("sm_70", "sm_75"))
    assert len(set(volta.map(3, 5)[0])) == 2  # the same element in two lanes
    assert len(set(turing.map(3, 5)[0])) == 1  # in one lane, in two registers


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_86", "sm_90", "sm_100"])
def test_what_turing_began_every_newer_gpu_has(arch):
    for operand in "ABC":
        new = layout("wmma.m16n16k16", operand, arch="sm_75", major="row")
        assert layout("wmma.m16n16k16", operand, arch=arch, major="row") is new
        assert new.on(arch)
        assert not layout("wmma.m16n16k16", operand, arch="sm_70", major="row").on(arch)


# -------------------------------------------------------------------------------------- in kernels

element, holds = layout("m16n8k16", "A").element, layout("m16n8k16", "A").holds


def triangle(i0, j0, out):
    """Ones on and below the diagonal, and a 5 at (i0, j0), made in registers."""
    lane = cuda.threadIdx.x
    a = cuda.local.array(8, np.float32)
    for x in range(8):
        i, j = element(lane, x)
        a[x] = np.float32(1) if j <= i else np.float32(0)
        if holds(lane, x, i0, j0):
            a[x] = np.float32(5)
    for x in range(8):
        out[lane, x] = a[x]


@pytest.mark.parametrize("place", [(3, 9), (15, 0), (0, 0)])
def test_a_kernel_builds_a_fragment_from_a_rule(place):
    out = np.zeros((32, 8), np.float32)
    simulate(triangle, 1, 32, *place, out)
    expected = np.tril(np.ones((16, 16), np.float32))
    expected[place] = 5
    assert np.array_equal(layout("m16n8k16", "A").gather(out)[0], expected)


@pytest.mark.ptxas
def test_it_compiles_to_registers_alone():
    ptx = compiled(triangle, ("int32", 0), ("int32", 0), ("float32", 2))
    assert ".local" not in ptx
    assert ".shared" not in ptx
    assert "call" not in ptx
    assert "mul.lo.s32" not in ptx  # rows and columns are shifts and masks
    assert ptx.count("and.pred") == 8  # row and column, of each register


@pytest.mark.ptxas
@every_layout
def test_a_compiled_kernel_finds_what_python_finds(form):
    """Of constants the compiler works it all out: the text has the answers for each single bit."""
    element, holds, last = form.element, form.holds, form.registers - 1

    def kernel(out):
        for n in range(6):
            lane = 1 << n if n < 5 else 31
            for m in range(5):
                register = (1 << m if m < 4 else 15) & last
                i, j = element(lane, register)
                here, below = holds(lane, register, i, j), holds(lane, register, i + 1, j)
                beside = holds(lane, register, i, j + 1)
                out[n, m] = 256 * i + j if here and not below and not beside else -1

    ptx = compiled(kernel, ("int32", 2))
    constants = dict(re.findall(r"mov\.u32 \t(%r\d+), (-?\d+);", ptx))
    found = [int(constants[r]) for r in re.findall(r"st\.global\.u32 \t\[.*?\], (%r\d+);", ptx)]
    lanes, registers = [1, 2, 4, 8, 16, 31], [x & last for x in (1, 2, 4, 8, 15)]
    places = [form.element(lane, register) for lane in lanes for register in registers]
    assert found == [256 * i + j for i, j in places]

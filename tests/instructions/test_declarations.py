"""Instructions as declared: names, least GPUs and text are those of the manual."""

import subprocess
import sys

import pytest

from benchmarks.hardware.probes.instructions import INSTRUCTIONS
from gemmlab import instructions
from gemmlab.device import architecture
from gemmlab.instructions.instruction import Memory
from gemmlab.numerics import MMAS
from tests.support.paths import ROOT

every_instruction = pytest.mark.parametrize("instruction", INSTRUCTIONS, ids=lambda x: x.name)


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
    assert architecture(instruction.requires).capability == next(
        least for start, least in LEAST.items() if instruction.name.startswith(start)
    )


def test_matrix_instructions_are_those_of_the_emulator():
    """Each of `MMAS` has instructions, and no instruction is of a shape that is not there."""
    made = {}
    for x in INSTRUCTIONS:
        if x.kind == "mma":
            i, stored = x.meaning.args
            made.setdefault(i.name, set()).add(stored)
            assert x.requires == i.requires
            out, form = i.name.split(".")[-2:]
            assert x.name.startswith(i.family)
            assert x.name.endswith(out if i.family == "wmma" else f"{out}_{form}")
    every = {(a, b) for a in ("row", "col") for b in ("row", "col")}
    for name, i in MMAS.items():
        if name == "wmma.m16n16k8.f32.tf32":  # has no layout that was read
            assert name not in made
        else:
            free = i.shape == "m8n8k4" or i.family == "wmma"
            assert made.pop(name) == (every if free else {("row", "col")})
    assert made == {}


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


def test_memory_operands_say_how_wide_they_are():
    for x in INSTRUCTIONS:
        for operand in x.operands:
            if isinstance(operand, Memory):
                assert operand.width(2) in (4, 8, 16)

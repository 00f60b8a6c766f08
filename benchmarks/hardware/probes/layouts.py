"""Read the layout of an instruction's operand from a machine that runs it: a GPU, or the simulator.

A load is of a matrix whose elements are their own numbers. A matrix instruction tells where A and
B meet, and where the result is: its three layouts are read from each other, and hold together.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.hardware.probes.instructions import INSTRUCTIONS, WARP, Probe, probe
from gemmlab import instructions
from gemmlab.formats import BY_PTX
from gemmlab.instructions import instruction
from gemmlab.instructions.fragments import Layout, layout
from gemmlab.instructions.instruction import halves, numbers, registers

Launch = Callable[[Callable, list[np.ndarray]], np.ndarray]


def read_layout(form: Layout, launch: Launch) -> np.ndarray:
    """(row, column) of each register of each lane, (32, registers, 2), as a machine has it.

    launch : runs a kernel on arrays, a warp a block, and returns the last of them

    Raises NotImplementedError for a layout that no instruction has.
    """
    if form.instruction.startswith("ldmatrix"):
        return _read_ldmatrix(form, launch)
    if form.instruction.startswith("wmma"):
        return _read_wmma(form, launch)
    return (_read_sum if form.operand == "C" else _read_operand)(form, launch)


def _read_ldmatrix(form: Layout, launch: Launch) -> np.ndarray:
    """Load matrices whose elements are their own numbers."""
    one = probe(getattr(instructions, form.instruction.replace(".", "_")))
    codes = np.arange(4 * 64, dtype=np.uint16).reshape(1, 32, 8)
    values = {"rows": codes, "at": np.arange(32, dtype=np.int32).reshape(1, 32)}
    arguments = [values[i.name] for i in one.inputs]
    words = launch(one.kernel, [*arguments, np.zeros((1, *one.output[1]), np.uint32)])[0]
    code = halves(words).astype(int)
    expected = form.matrix(np.arange(32)[:, None], np.arange(form.registers)[None, :])
    if (code // 64 != expected).any():
        raise ValueError("registers hold other matrices than the table says")
    return np.stack([code % 64 // 8, code % 8], axis=-1)


def _read_wmma(form: Layout, launch: Launch) -> np.ndarray:
    """Load a tile whose elements are their own numbers; 256 of them are exact in float16."""
    of, kind = form.operand.lower(), form.formats
    if form.operand == "C":
        found = [_wmma_codes(f"wmma_load_c_{f}", f, "row", launch) for f in kind]
    else:
        majors = [form.major] if form.major else ["row", "col"]
        found = [_wmma_codes(f"wmma_load_{of}_{m}", "f16", m, launch) for m in majors]
    if any((f != found[0]).any() for f in found):
        raise ValueError("formats, or row-major and column-major operands, differ")
    return found[0]


def _wmma_codes(name: str, form: str, major: str, launch: Launch) -> np.ndarray:
    one = probe(getattr(instructions, name))
    tile = np.zeros((1, 16, 24), one.inputs[0].dtype)
    tile[0, :, 8:] = np.arange(256).reshape(16, 16)
    out = launch(one.kernel, [tile, np.zeros((1, *one.output[1]), one.output[0])])[0]
    code = numbers(out, instruction.held(BY_PTX[form])).astype(int)
    place = np.stack([code // 16, code % 16], axis=-1)
    return place if major == "row" else place[..., ::-1]


def _read_operand(form: Layout, launch: Launch) -> np.ndarray:
    """Set one register of one lane to 1 at a time; the other operand is 1 + k in row or column k.

    D then has 1 + k in the row (of A) or column (of B) of that register.
    """
    one, forms, held = _matrix_instruction(form, form.formats[0], "")
    count = form.registers
    blocks = WARP * count
    fragments = {o: np.zeros((blocks, WARP, f.registers), np.float32) for o, f in forms.items()}
    lanes, places = np.divmod(np.arange(blocks), count)
    fragments[form.operand][np.arange(blocks), lanes, places] = 1
    k = np.arange(forms["A"].shape[1]) + 1.0
    other, k = ("B", k[:, None]) if form.operand == "A" else ("A", k[None, :])
    whole = forms[other].matrices, *forms[other].shape
    fragments[other][:] = forms[other].scatter(np.broadcast_to(k, whole))
    d = forms["C"].gather(_result(one, fragments, held, launch)).astype(float).max(axis=1)
    rows, cols = d.max(axis=2).argmax(axis=1), d.max(axis=1).argmax(axis=1)
    value = d.max(axis=(1, 2)).astype(int) - 1
    if (value < 0).any():
        raise ValueError("a register had no effect")
    i, j = (rows, value) if form.operand == "A" else (value, cols)
    return np.stack([i, j], axis=-1).reshape(WARP, count, 2)


def _read_sum(form: Layout, launch: Launch) -> np.ndarray:
    """Multiply matrices whose product has the numbers of its own elements."""
    found = []
    for out in form.formats:
        one, forms, held = _matrix_instruction(form, "", out)
        rows, cols = form.shape
        a, b = np.zeros(forms["A"].shape), np.zeros(forms["B"].shape)
        a[:, 0], a[:, 1] = np.arange(rows), 1
        b[0], b[1] = cols, np.arange(cols)
        fragments = {"C": np.zeros((1, WARP, form.registers), np.float32)}
        for operand, x in (("A", a), ("B", b)):
            whole = np.broadcast_to(x, (forms[operand].matrices, *x.shape))
            fragments[operand] = forms[operand].scatter(whole).astype(np.float32)[None]
        code = _result(one, fragments, held, launch)[0].astype(int)
        found.append(np.stack([code // cols, code % cols], axis=-1))
    if any((f != found[0]).any() for f in found):
        raise ValueError("formats differ")
    return found[0]


def _matrix_instruction(form: Layout, ab: str, out: str) -> tuple[Probe, dict, dict]:
    """The first `mma` with this layout and, if given, formats; its layouts; its formats."""
    for x in INSTRUCTIONS:
        if not x.name.startswith(f"mma_{form.instruction}_"):
            continue
        *stored, c, b = x.name.split("_")[2:]
        major = dict(zip("AB", stored or ("row", "col"), strict=True), C="")
        if out in ("", c) and ab in ("", b) and form.major in ("", major[form.operand]):
            held = {"A": b, "B": b, "C": c}
            forms = {o: layout(form.instruction, o, held[o], major=major[o]) for o in held}
            return probe(x), forms, held
    raise NotImplementedError("there is no instruction for it")


def _result(one: Probe, fragments: dict, held: dict, launch: Launch) -> np.ndarray:
    """The numbers in the registers of D."""
    arguments = [
        registers(fragments[o].astype(BY_PTX[held[o]].carrier), instruction.held(BY_PTX[held[o]]))
        for o in "ABC"
    ]
    blocks = len(fragments["A"])
    out = np.zeros((blocks, *one.output[1]), one.output[0])
    return numbers(launch(one.kernel, [*arguments, out]), instruction.held(BY_PTX[held["C"]]))

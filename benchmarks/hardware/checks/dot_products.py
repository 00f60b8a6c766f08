"""The emulated Tensor Core and the GPU's, to the bit: dot products of every `mma.sync`.

Each instruction multiplies random tiles of every family of `probes/tiles.py`, and every element of
every result is compared. A sample of operands and answers is recorded.
"""

from collections.abc import Mapping

import numpy as np

from benchmarks.hardware import machine
from benchmarks.hardware.check import Check, Comparison, Measured
from benchmarks.hardware.probes.instructions import WARP, probe
from benchmarks.hardware.probes.tiles import FAMILIES, Draw
from gemmlab import instructions
from gemmlab.device import Device
from gemmlab.formats import FORMATS
from gemmlab.instructions import layout
from gemmlab.instructions.instruction import halves, packed
from gemmlab.numerics import MMAS, Mma, decode, mma, number_format

TILES = 2048  # of each family
SAMPLE = 20  # dot products of each family that are recorded
CASES = {i.name: i for i in MMAS.values() if i.family == "mma"}


def pieces(device: Device) -> Mapping[str, str]:
    return {name: refusal(case, device) for name, case in CASES.items()}


def refusal(case: Mma, device: Device) -> str:
    if machine.tensor_core(device) is None:
        return machine.unknown_arithmetic(device)
    return instruction_of(case).refusal(device.compute_capability) or ""


def instruction_of(case: Mma) -> instructions.Instruction:
    return getattr(instructions, f"mma_{case.name.replace('.', '_')}")


def layout_of(case: Mma, operand: str) -> instructions.Layout:
    form = FORMATS[case.out_dtype if operand == "C" else case.dtype].ptx
    return layout(f"m{case.m}n{case.n}k{case.k}", operand, form)


def to_registers(case: Mma, operand: str, words: np.ndarray) -> np.ndarray:
    """Tiles of words (tiles, rows, columns) as registers (warps, 32, count)."""
    place = layout_of(case, operand)
    lanes = place.scatter(words.reshape(-1, place.matrices, *words.shape[1:]))
    return packed(lanes) if lanes.itemsize == 2 else np.ascontiguousarray(lanes).view(np.float32)


def from_registers(case: Mma, registers: np.ndarray) -> np.ndarray:
    """The words of D, (tiles, m, n), in registers (warps, 32, count)."""
    lanes = halves(registers) if case.out_dtype == "float16" else registers.view(np.uint32)
    return layout_of(case, "C").gather(lanes).reshape(-1, case.m, case.n)


def draw(case: Mma, family: str, tiles: int) -> list[np.ndarray]:
    """A (tiles, m, k), B (tiles, k, n) and C (tiles, m, n) as words, the same at every call."""
    return Draw(case, tiles, [list(CASES).index(case.name), FAMILIES.index(family)]).words(family)


def measure(piece: str, device: Device) -> Measured:
    case = CASES[piece]
    some = {key: [] for key in "abcd"}
    found = {"tiles": TILES, "families": FAMILIES}
    for family in FAMILIES:
        a, b, c = words = draw(case, family, TILES)
        given = [to_registers(case, x, w) for x, w in zip("ABC", words, strict=True)]
        poison = np.full(given[2].shape, np.array(0xDEADBEEF, np.uint32).view(given[2].dtype))
        kernel = probe(instruction_of(case)).kernel
        after = machine.launch(kernel, len(given[0]), WARP, [*given, poison])
        d = found[family] = from_registers(case, after[-1])
        t, i, j = np.random.default_rng(0).integers(0, d.shape, (SAMPLE, 3)).T
        for key, vectors in zip("abcd", (a[t, i], b[t, :, j], c[t, i, j], d[t, i, j]), strict=True):
            some[key].append(vectors)
    return {**found, **{key: np.concatenate(parts) for key, parts in some.items()}}


def kept(measured: Measured) -> Measured:
    return {k: v for k, v in measured.items() if k not in FAMILIES}


def compare(piece: str, measured: Measured, device: Device) -> Comparison:
    case, arch = CASES[piece], machine.tensor_core(device)
    found = Comparison()
    a, b, c, d = (measured[key] for key in "abcd")
    # Each dot product as element (0, 0) of a tile of its own.
    tiles = [np.zeros((len(x), *shape), x.dtype) for x, shape in zip((a, b, c), shapes(case))]  # noqa: B905
    tiles[0][:, 0, :], tiles[1][:, :, 0], tiles[2][:, 0, 0] = a, b, c
    found.equal("dot product", d, emulate(case, arch, *tiles)[:, 0, 0])
    for family in FAMILIES:
        if family in measured:
            words = draw(case, family, measured["tiles"])
            model = emulate(case, arch, *words)
            found.equal(family, measured[family], model, lambda at, w=words: operands(w, at))
    return found


def shapes(case: Mma) -> tuple:
    """Of A, B and C."""
    return (case.m, case.k), (case.k, case.n), (case.m, case.n)


def emulate(case: Mma, arch: str, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """The words that the emulated Tensor Core gives for tiles of words."""
    a, b = (numbers(x, case.dtype) for x in (a, b))
    out = mma(a, b, decode(c, case.out_dtype), case.name, arch)
    return out.view(number_format(case.out_dtype).words)


def numbers(words: np.ndarray, dtype: str) -> np.ndarray:
    """Words as numbers; of TF32 with the low bits that are not read."""
    return words.view(np.float32) if dtype == "tf32" else decode(words, dtype)


def operands(words: list[np.ndarray], at: tuple[int, ...]) -> str:
    """The words of one dot product, in hexadecimal."""
    (a, b, c), (t, i, j) = words, at
    rows = (("a", a[t, i]), ("b", b[t, :, j]), ("c", [c[t, i, j]]))
    return "; ".join(f"{key} {' '.join(f'{int(w):x}' for w in row)}" for key, row in rows)


CHECK = Check(
    "dot_products",
    "dot products of each mma.sync instruction: the GPU's and the emulator's",
    pieces,
    measure,
    compare,
    kept,
    quick=("m16n8k16.f32.f16", "m16n8k8.f32.tf32"),
)

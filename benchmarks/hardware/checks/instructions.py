"""Each instruction of gemmlab.instructions on the GPU and on the simulator, bit by bit.

A kernel for each runs it in a thousand warps, on operands of all bit patterns, on extreme and on
normal numbers. A few warps more, with operands of their own, are what is recorded.
"""

import zlib
from collections.abc import Mapping

import numpy as np

from benchmarks.hardware import machine
from benchmarks.hardware.check import Check, Comparison, Measured, bits
from benchmarks.hardware.probes.instructions import INSTRUCTIONS, KINDS, WARP, probe
from gemmlab import instructions, simulate
from gemmlab.device import Device

BLOCKS = 1000  # warps for each kind of operands
SAMPLE = 2  # of them, whose results are recorded
MANY = "many "  # begins the key of what is not recorded


def pieces(device: Device) -> Mapping[str, str]:
    return {x.name: refusal(x, device) for x in INSTRUCTIONS}


def refusal(instruction: instructions.Instruction, device: Device) -> str:
    """Why an instruction is left out, "" where it is not."""
    if not probe(instruction).inputs:
        return "it has no result of its own; the copies' probes have it"
    if instruction.kind == "mma" and machine.tensor_core(device) is None:
        return machine.unknown_arithmetic(device)
    return instruction.refusal(device.compute_capability) or ""


def measure(piece: str, device: Device) -> Measured:
    instruction = getattr(instructions, piece)
    one = probe(instruction)
    found = {"ptx": instruction.ptx}
    for kind in KINDS:
        found[f"{kind} operands"] = fingerprint(one.arguments(SAMPLE, kind)[:-1])
        for key, blocks in ((kind, SAMPLE), (MANY + kind, BLOCKS)):
            after = machine.launch(one.kernel, blocks, WARP, one.arguments(blocks, kind))
            found[key] = bits(after[-1])
    return found


def fingerprint(arrays: list[np.ndarray]) -> int:
    """A checksum of operands, which shows whether others are the same."""
    return zlib.crc32(b"".join(a.tobytes() for a in arrays))


def compare(piece: str, measured: Measured, device: Device) -> Comparison:
    instruction = getattr(instructions, piece)
    one = probe(instruction)
    found = Comparison()
    found.equal("PTX", measured["ptx"], instruction.ptx)
    for kind in KINDS:
        few = one.arguments(SAMPLE, kind)[:-1]
        found.equal(f"checksum of {kind} operands", measured[f"{kind} operands"], fingerprint(few))
        for key in (kind, MANY + kind):
            if key in measured:
                blocks = len(measured[key])
                *operands, result = one.arguments(blocks, kind)
                simulate(one.kernel, blocks, WARP, *operands, result, device=device)
                found.equal(
                    kind, measured[key], bits(result), lambda at, x=operands: of_lane(x, at)
                )
    return found


def of_lane(operands: list[np.ndarray], at: tuple[int, ...]) -> str:
    """The first words of each operand that a lane had, in hexadecimal."""
    words = (bits(a)[at[0]].reshape(WARP, -1)[at[1]][:8] for a in operands if a[0].size >= WARP)
    return "the lane's operands " + " ".join("/".join(f"{int(w):x}" for w in x) for x in words)


def kept(measured: Measured) -> Measured:
    return {k: v for k, v in measured.items() if not k.startswith(MANY)}


CHECK = Check(
    "instructions",
    "results of every instruction: the GPU's and the simulator's",
    pieces,
    measure,
    compare,
    kept,
    quick=(
        *("cvt_rna_tf32_f32", "cvt_rn_f16x2_f32", "ldmatrix_x4_trans", "stmatrix_x2", "load_v4"),
        *("cp_async_16", "mma_m16n8k16_f32_f16", "mma_m8n8k4_f32_f16", "wmma_mma_row_row_f32"),
    ),
)

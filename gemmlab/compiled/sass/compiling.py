"""From PTX to a listing, by NVIDIA's assembler and disassembler; no GPU is needed.

`ptxas` comes with the wheel nvidia-cuda-nvcc, `nvdisasm` with nvidia-cuda-nvdisasm; a CUDA Toolkit
has both.
"""

from __future__ import annotations

import io
import json
import re
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from gemmlab.compiled.sass.listing import BYTES, Control, Instruction, Listing
from gemmlab.here.tools import run

# Instructions of one architecture alone, which have to be asked for: "sm_90a".
SPECIFIC = ("wgmma.", "setmaxnreg.")


class Usage(NamedTuple):
    """What ptxas says a kernel takes: registers and local memory [B] of a thread, static shared
    memory of a block [B].
    """

    registers: int
    local_bytes: int
    shared_bytes: int


def assemble(ptx: str, architecture: str, registers: int | None = None) -> tuple[bytes, Usage]:
    """The cubin of a PTX text with one kernel, and what the kernel takes.

    registers : at most, of a thread; None for as many as ptxas likes
    Raises RuntimeError with the assembler's words where it refuses the text.
    """
    if any(name in ptx for name in SPECIFIC):  # as Numba targets a GPU that is there
        ptx = re.sub(rf"(\.target {architecture})\b", r"\1a", ptx)
        architecture += "a"
    with tempfile.TemporaryDirectory() as folder:
        source, cubin = Path(folder, "kernel.ptx"), Path(folder, "kernel.cubin")
        source.write_text(ptx, "utf-8")
        limit = [] if registers is None else ["-maxrregcount", str(registers)]
        said = run("ptxas", "-v", "-arch", architecture, source, "-o", cubin, *limit)
        return cubin.read_bytes(), usage(said.stderr + said.stdout)


def usage(text: str) -> Usage:
    """The `Usage` that `ptxas -v` prints.

    >>> usage("ptxas info : 8 bytes stack frame, Used 24 registers, 256 bytes smem")
    Usage(registers=24, local_bytes=8, shared_bytes=256)
    """
    patterns = r"Used (\d+) registers", r"(\d+) bytes stack frame", r"(\d+) bytes smem"
    return Usage(*(int(found[1]) if (found := re.search(p, text)) else 0 for p in patterns))


def machine_code(cubin: bytes) -> bytes:
    """The instructions of the one kernel in `cubin`; ValueError for a cubin that has several."""
    from elftools.elf.elffile import ELFFile

    elf = ELFFile(io.BytesIO(cubin))
    texts = [s for s in elf.iter_sections() if s.name.startswith(".text.")]
    if len(texts) != 1:
        raise ValueError(f"a cubin with one kernel is needed, this one has {len(texts)}")
    return texts[0].data()


def disassemble(cubin: bytes, taken: Usage) -> Listing:
    """The listing of the one kernel in `cubin`; ValueError for a cubin that has several.

    The kernel is called "kernel" in it: Numba counts compilations in the names that it gives.
    """
    from elftools.elf.elffile import ELFFile

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "kernel.cubin")
        file.write_bytes(cubin)
        about, functions = json.loads(run("nvdisasm", "-json", file).stdout)
    elf = ELFFile(io.BytesIO(cubin))
    code, version = machine_code(cubin), about["SM"]["version"]
    starts = {f["function-name"]: f["start"] for f in functions}
    (own,) = (name for name, start in starts.items() if start == 0)
    return Listing(
        architecture=f"sm_{version['major']}{version['minor']}",
        instructions=tuple(
            _instruction(function["start"] + BYTES * i, item, code, own)
            for function in functions
            for i, item in enumerate(function["sass-instructions"])
        ),
        **taken._asdict(),
        functions={name: start for name, start in starts.items() if name != own},
        constants=_constants(elf),
        **_data(elf),
    )


def places(cubin: bytes) -> dict[int, tuple[str, int]]:
    """Of the instructions at these addresses [B], the file and the number of the source's line.

    Only PTX that names lines has them: Numba writes it with `lineinfo=True`.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "kernel.cubin")
        file.write_bytes(cubin)
        text = run("nvdisasm", "-g", "-c", file).stdout
    found, place = {}, None
    for line in text.splitlines():
        if named := re.match(r'\s*//## File "(.*)", line (\d+)', line):
            place = named[1], int(named[2])
        elif (begun := re.match(r"\s*/\*([0-9a-f]{4,})\*/", line)) and place:
            found[int(begun[1], 16)] = place
    return found


def _instruction(address: int, item: dict[str, Any], text: bytes, own: str) -> Instruction:
    """An instruction from nvdisasm's JSON, its control fields from the code itself.

    own : the kernel's name, which functions name that return to it

    Two faults of the JSON are mended: CAS lacks a comma, and P2R's operand PR is called its guard.
    """
    operands = re.sub(r"\b(R\d+|RZ)\[", r"\1,[", item.get("operands", ""))
    guard = item.get("predicate", "").removeprefix("@")
    if guard == "PR":
        guard, operands = "", operands.replace(",", ",PR,", 1)
    return Instruction(
        address=address,
        guard=guard,
        opcode=item["opcode"],
        operands=tuple("kernel" if o == own else o for o in operands.split(",") if operands),
        control=Control.decode(int.from_bytes(text[address + 8 : address + BYTES], "little")),
    )


def _constants(elf: Any) -> dict[int, bytes]:
    """Constant banks that have contents, without that of the parameters."""
    banks = {}
    for section in elf.iter_sections():
        found = re.match(r"\.nv\.constant([1-9]\d*)", section.name)
        if found:
            banks[int(found[1])] = section.data()
    return banks


def _data(elf: Any) -> dict[str, Any]:
    """The module's variables one after the other, and where bank 4 points to them."""
    names = [s.name for s in elf.iter_sections()]
    starts, data = {}, b""
    for index, section in enumerate(elf.iter_sections()):
        if section.name in (".nv.global", ".nv.global.init"):
            data += bytes(-len(data) % 256)
            starts[index] = len(data)
            filled = section["sh_type"] != "SHT_NOBITS"
            data += section.data() if filled else bytes(section["sh_size"])
    if ".rela.nv.constant4" not in names:
        return {"data": data}
    symbols = elf.get_section_by_name(".symtab")
    pointers = []
    for entry in elf.get_section_by_name(".rela.nv.constant4").iter_relocations():
        symbol = symbols.get_symbol(entry["r_info_sym"])
        start = starts.get(symbol["st_shndx"])
        if start is not None:
            pointers.append((entry["r_offset"], start + symbol["st_value"] + entry["r_addend"]))
    return {"data": data, "pointers": tuple(pointers)}

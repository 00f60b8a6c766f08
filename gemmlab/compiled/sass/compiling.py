"""A kernel becomes a listing, for a GPU that need not be here.

Numba-CUDA or numba-cuda-mlir compiles the kernel to PTX, NVIDIA's assembler that to a cubin, and
the disassembler reads it.
`ptxas` comes with the wheel nvidia-cuda-nvcc, `nvdisasm` with nvidia-cuda-nvdisasm; a CUDA Toolkit
has both.
"""

import io
import json
import linecache
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from gemmlab.compiled.sass.listing import BYTES, Control, Instruction, Line, Listing
from gemmlab.device import architecture
from gemmlab.here import compilers
from gemmlab.here.compilers import (
    AUTO,
    MLIR,
    NUMBA,
    Usage,
    assemble,
    check_tools,
    chosen,
    disassembled,
)
from gemmlab.instructions import typed


def machine_code(cubin: bytes) -> bytes:
    """Return the instructions of the one kernel in `cubin`; ValueError where it has several."""
    from elftools.elf.elffile import ELFFile

    elf = ELFFile(io.BytesIO(cubin))
    texts = [s for s in elf.iter_sections() if s.name.startswith(".text.")]
    if len(texts) != 1:
        raise ValueError(f"a cubin with one kernel is needed, this one has {len(texts)}")
    return texts[0].data()


def disassemble(cubin: bytes, taken: Usage) -> Listing:
    """Read the listing of the one kernel in `cubin`; ValueError where it has several.

    The kernel is called "kernel" in it: Numba counts compilations in the names that it gives.
    """
    from elftools.elf.elffile import ELFFile

    about, functions = json.loads(disassembled(cubin, "-json"))
    elf = ELFFile(io.BytesIO(cubin))
    code, version = machine_code(cubin), about["SM"]["version"]
    starts = {f["function-name"]: f["start"] for f in functions}
    (own,) = (name for name, start in starts.items() if start == 0)
    return Listing(
        architecture=f"sm_{version['major']}{version['minor']}",
        instructions=tuple(
            read_instruction(function["start"] + BYTES * i, item, code, own)
            for function in functions
            for i, item in enumerate(function["sass-instructions"])
        ),
        **taken._asdict(),
        functions={name: start for name, start in starts.items() if name != own},
        constants=constants_of(elf, own),
        **data_of(elf),
    )


def places(cubin: bytes) -> dict[int, tuple[str, int]]:
    """Find the source's file and line number of instructions, by their addresses [B].

    Only PTX that names lines has them: Numba writes it with `lineinfo=True`.
    """
    found, place = {}, None
    for line in disassembled(cubin, "-g", "-c").splitlines():
        if named := re.match(r'\s*//## File "(.*)", line (\d+)', line):
            place = named[1], int(named[2])
        elif (begun := re.match(r"\s*/\*([0-9a-f]{4,})\*/", line)) and place:
            found[int(begun[1], 16)] = place
    return found


class Frame(NamedTuple):
    """A frame is a line of a file, counted from 1."""

    file: str
    number: int


_PLACE = re.compile(r'File "([^"]*)", line (\d+)')
_MADE = re.compile(r".*/(<[^/]*>)$")  # of what has no file Numba makes one in this folder


def frames(cubin: bytes, kernel: str | None = None) -> dict[int, tuple[Frame, ...]]:
    """Return the line of each instruction, by its address [B], and the lines where it is inlined.

    The innermost comes first. Code that was compiled without lines (-lineinfo) has none.
    kernel : its name, where the cubin has several
    """
    found: dict[int, tuple[Frame, ...]] = {}
    place: tuple[Frame, ...] = ()
    follows = inside = False
    for line in disassembled(cubin, "-gi", "-c").splitlines():
        if begun := re.match(r"\s*\.section\s+\.text\.([^,]+)", line):
            inside, place = kernel in (None, begun[1]), ()
        elif inside and "//## File" in line:
            named = _PLACE.search(line)
            one = Frame(_MADE.sub(r"\1", named[1]), int(named[2]))
            place, follows = ((*place, one) if follows else (one,)), True
        elif inside and (begun := re.match(r"\s*/\*([0-9a-f]{4,})\*/", line)):
            follows = False
            found[int(begun[1], 16)] = place
    return found


SOURCE_FIRST = re.compile(r"^(desc\[\w+\]\[[^]]*\]),(!?U?P\w+)?(\[[^]]*\])$")


def read_instruction(address: int, item: dict[str, Any], text: bytes, own: str) -> Instruction:
    """Make an instruction from nvdisasm's JSON, its control fields from the code itself.

    own : the kernel's name, which functions name that return to it

    Faults of the JSON are mended: CAS lacks a comma, P2R's operand PR is called its guard, and
    nvdisasm 13.0 has what LDGSTS copies before the place, to which it joins the predicate; and for
    GPUs before sm_90 it joins both.
    """
    operands = re.sub(r"\b(R\d+|RZ)\[", r"\1,[", item.get("operands", ""))
    if item["opcode"].startswith("LDGSTS"):
        operands = SOURCE_FIRST.sub(r"\3,\1,\2", operands).rstrip(",")
        operands = re.sub(r"^(\[[^]]*\])\[", r"\1,[", operands)
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


def constants_of(elf: Any, kernel: str) -> dict[int, bytes]:
    """Return a kernel's constant banks that have contents, without that of the parameters."""
    banks = {}
    for section in elf.iter_sections():
        found = re.fullmatch(r"\.nv\.constant([1-9]\d*)(\.(.*))?", section.name)
        if found and found[3] in (None, kernel):
            banks[int(found[1])] = section.data()
    return banks


def data_of(elf: Any) -> dict[str, Any]:
    """Return the module's variables one after the other, and where bank 4 points to them."""
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


def listing(
    function: Callable,
    arguments: Sequence[Any],
    target: str = "sm_90",
    max_registers: int | None = None,
    compiler: str = AUTO,
    **options: Any,
) -> Listing:
    """Compile a kernel and assemble it for arguments of these types, and read its listing.

    compiler : a name in `COMPILERS`, or "auto" for the first that is installed
    options : those of `numba.cuda.jit`, such as fastmath and launch_bounds
    Raises RuntimeError where a tool is missing or refuses the code, NotImplementedError for a
    kernel that waits for the whole grid, and what Numba raises.
    """
    return _listing(*_asked(function, arguments, target, max_registers, compiler, options))


def with_lines(
    function: Callable,
    arguments: Sequence[Any],
    target: str = "sm_90",
    max_registers: int | None = None,
    compiler: str = AUTO,
    **options: Any,
) -> Listing:
    """Return the `listing` with the line that each of its instructions comes from.

    To name lines is a second compilation, in which some kernels get other instructions: then there
    are no lines, because the listing is what a GPU executes.
    """
    asked = _asked(function, arguments, target, max_registers, compiler, options)
    code, (cubin, taken) = _listing(*asked), _cubin(*asked, lineinfo=True)
    named, known = disassemble(cubin, taken), places(cubin)
    if [i.opcode for i in named.instructions] != [i.opcode for i in code.instructions]:
        return code
    lines = tuple(_line(asked.function, known.get(i.address)) for i in code.instructions)
    return replace(code, lines=lines)


def with_places(
    function: Callable,
    arguments: Sequence[Any],
    target: str = "sm_90",
    max_registers: int | None = None,
    compiler: str = AUTO,
    **options: Any,
) -> tuple[Listing, dict[int, tuple[Frame, ...]]]:
    """Return a kernel's listing as it is compiled with lines, and those of each instruction."""
    cubin, taken = _cubin(
        *_asked(function, arguments, target, max_registers, compiler, options), lineinfo=True
    )
    return disassemble(cubin, taken), frames(cubin)


class Asked(NamedTuple):
    """A listing is asked for of a function, by all that the compilers are told."""

    function: Callable
    signature: tuple
    target: str
    registers: int | None
    compiler: str
    options: tuple


def _asked(
    function: Callable, arguments: Sequence[Any], target: str, registers: int | None,
    compiler: str, options: Mapping[str, Any],
) -> Asked:  # fmt: skip
    if compiler == AUTO and type(function).__module__.startswith(typed.MLIR):
        compiler = MLIR  # whose `cuda.jit` it has
    check_tools(compiler)
    compiler = chosen(compiler)
    plain = getattr(function, "py_func", function)
    typeof = _mlirs_type if compiler == MLIR else _type
    signature = tuple(typeof(argument) for argument in arguments)
    return Asked(plain, signature, target, registers, compiler, tuple(sorted(options.items())))


def cubin(
    function: Callable,
    arguments: Sequence[Any],
    target: str = "sm_90",
    max_registers: int | None = None,
    compiler: str = AUTO,
    **options: Any,
) -> tuple[bytes, Usage]:
    """Compile a kernel as `listing` does; return the cubin, and what the kernel takes."""
    return _cubin(*_asked(function, arguments, target, max_registers, compiler, options))


@lru_cache(maxsize=256)
def _listing(*asked: Any) -> Listing:
    code = disassemble(*_cubin(*asked))
    return replace(code, memrefs=Asked(*asked).compiler == MLIR)


def _cubin(
    function: Callable, signature: tuple, target: str, registers: int | None, compiler: str,
    options: tuple, **more: Any,
) -> tuple[bytes, Usage]:  # fmt: skip
    capability = architecture(target).capability
    text = to_ptx(compiler)(function, signature, capability, **dict(options), **more)
    if "cudaCGGetIntrinsicHandle" in text:  # of a library of the CUDA Toolkit
        raise NotImplementedError(
            "a kernel that waits for the whole grid, by cuda.cg.this_grid().sync(), is not "
            "compiled here; predict its parts, each as a launch of its own"
        )
    return assemble(text, target, registers)


def to_ptx(compiler: str = AUTO) -> Callable[..., str]:
    """Return the function by which a compiler makes PTX; "auto" is the first that is installed."""
    if chosen(compiler) == NUMBA:
        return compilers.ptx
    from gemmlab.instructions import numba_cuda_mlir

    return numba_cuda_mlir.ptx


def _line(function: Callable, place: tuple[str, int] | None) -> Line | None:
    """Return the line of a place in a file; Numba calls what belongs to no line the line 0."""
    if place is None or not place[1]:
        return None
    file, number = place
    own = function.__code__.co_filename  # of what has no file Numba makes one in this folder
    here = Path(file) == Path(own).absolute()
    text = linecache.getline(own if here else file, number).strip()
    return Line(number - function.__code__.co_firstlineno + 1 if here else 0, text)


def _type(argument: Any) -> Any:
    try:
        from numba.cuda.typing.typeof import Purpose, typeof
    except ImportError:
        from numba.core.typing.typeof import Purpose, typeof

    return typeof(argument, Purpose.argument)


def _mlirs_type(argument: Any) -> Any:
    from numba_cuda_mlir.numba_cuda.typing.typeof import Purpose, typeof

    return typeof(argument, Purpose.argument)

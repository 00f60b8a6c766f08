"""Code is what a launch executes, whoever compiled it: a kernel of Numba, a cubin, or PTX.

nvcc, Triton, CuTe DSL and numba-cuda-mlir leave their PTX to ptxas, and ptxas says in a cubin what
a driver has to know of a kernel. `cuobjdump -elf` prints the names of these attributes; none of
their layouts is documented.
"""

import io
import json
import math
import re
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from gemmlab.compiled.sass import compiling
from gemmlab.compiled.sass.compiling import Frame, constants_of, data_of, read_instruction
from gemmlab.compiled.sass.listing import BYTES, Listing, Parameters
from gemmlab.here.compilers import assemble, check_tools, disassembled

EM_CUDA = 190  # e_machine of an ELF file with code of a GPU
SYSTEM = 0x400  # bytes of a block's shared memory that belong to the system, since Hopper
CODE = ".text."
# Attributes of .nv.info, EIATTR_…
KPARAM_INFO, PARAM_CBANK, REQNTID = 0x17, 0x0A, 0x10
REGCOUNT, FRAME_SIZE, MIN_STACK_SIZE = 0x2F, 0x11, 0x12
STACK = 1024  # bytes of a thread that the driver adds for functions that call each other
_WITH_BYTES = 4  # the form of an attribute that is followed by so many bytes as its header says


@dataclass(frozen=True)
class Module:
    """A module is a cubin with the names of its kernels."""

    cubin: bytes
    kernels: tuple[str, ...]

    def one(self, name: str | None = None) -> str:
        """Return the name of a kernel, of the only one by default; ValueError for none of these."""
        if name is None and len(self.kernels) == 1:
            return self.kernels[0]
        if name not in self.kernels:
            told = "a kernel is to be named" if name is None else f"there is no kernel {name!r}"
            raise ValueError(f"{told}; the module has {', '.join(self.kernels) or 'none'}")
        return name


def module(code: bytes | str | Path, architecture: str) -> Module:
    """Return a module from a cubin, from PTX, or from the path of a file with one of them.

    architecture : "sm_90", for which PTX is assembled; a cubin has one already
    Raises ValueError for another thing, FileNotFoundError, and RuntimeError where a tool is missing
    or refuses the code.
    """
    check_tools()
    if isinstance(code, Path) or (isinstance(code, str) and "\n" not in code):
        path = Path(code)
        if not path.is_file():
            raise FileNotFoundError(f"there is no file {str(path)!r}")
        code = path.read_bytes()
    if isinstance(code, bytes) and not code.startswith(b"\x7fELF"):
        code = _text(code)
    return _module(code, architecture)


def _text(code: bytes) -> str:
    try:
        found = code.decode().rstrip("\0")
    except UnicodeDecodeError:
        found = ""
    if ".version" not in found or ".entry" not in found:
        raise ValueError(
            "this is neither a cubin nor PTX with a kernel: `nvcc -cubin -arch=sm_90 FILE.cu` "
            'makes a cubin, Triton keeps one as `compiled.asm["cubin"]`'
        )
    return found


@lru_cache(maxsize=32)
def _module(code: bytes | str, architecture: str) -> Module:
    if isinstance(code, str):
        target = re.search(r"\.target\s+(\w+)", code)  # "sm_90a" has more than "sm_90"
        more = target[1] if target and target[1] == f"{architecture}a" else architecture
        code, _ = assemble(code, more)
    elf = _elf(code)
    if elf["e_machine"] not in ("EM_CUDA", EM_CUDA):
        raise ValueError(
            "this ELF file is for a processor, not for a GPU: `cuobjdump -xelf all FILE` takes "
            "cubins out of a program or an object file"
        )
    texts = (s.name for s in elf.iter_sections() if s.name.startswith(CODE))
    return Module(code, tuple(sorted(name.removeprefix(CODE) for name in texts)))


def _elf(cubin: bytes) -> Any:
    from elftools.elf.elffile import ELFFile

    return ELFFile(io.BytesIO(cubin))


@lru_cache(maxsize=64)
def listing(of: Module, name: str | None = None) -> Listing:
    """Read a kernel of a module, and where the driver puts its parameters; ValueError for none."""
    kernel = of.one(name)
    about, functions = json.loads(disassembled(of.cubin, "-json"))
    elf, version = _elf(of.cubin), about["SM"]["version"]
    place = elf.get_section_index(CODE + kernel)
    code = elf.get_section(place).data()
    numbers = {
        symbol.name: number
        for number, symbol in enumerate(elf.get_section_by_name(".symtab").iter_symbols())
        if symbol["st_shndx"] == place and symbol["st_info"]["type"] != "STT_SECTION"
    }
    mine = [f for f in functions if f["function-name"] in numbers]
    called = {f["function-name"]: f["start"] for f in mine if f["function-name"] != kernel}
    of_kernel = dict(_of_symbols(elf, numbers[kernel]))
    shared = elf.get_section_by_name(f".nv.shared.{kernel}")
    return Listing(
        architecture=f"sm_{version['major']}{version['minor']}",
        instructions=tuple(
            read_instruction(function["start"] + BYTES * i, item, code, kernel)
            for function in sorted(mine, key=lambda f: f["start"])
            for i, item in enumerate(function["sass-instructions"])
        ),
        registers=of_kernel[REGCOUNT],
        local_bytes=max(of_kernel.get(FRAME_SIZE, 0), of_kernel.get(MIN_STACK_SIZE, 0))
        + STACK * any("$__internal" not in name for name in called),
        shared_bytes=max(0, shared["sh_size"] - SYSTEM * (version["major"] >= 9)) if shared else 0,
        functions=called,
        constants=constants_of(elf, kernel),
        **data_of(elf),
        parameters=parameters(of.cubin, kernel),
    )


def _of_symbols(elf: Any, number: int) -> Iterator[tuple[int, int]]:
    """Yield what .nv.info says of the symbol of this number: attribute and value."""
    for attribute, held in _attributes(elf, ".nv.info"):
        if attribute in (REGCOUNT, FRAME_SIZE, MIN_STACK_SIZE):
            symbol, value = struct.unpack("<2I", held)
            if symbol == number:
                yield attribute, value


def _attributes(elf: Any, section: str) -> Iterator[tuple[int, bytes]]:
    """Yield the attributes of a section that are followed by bytes."""
    found = elf.get_section_by_name(section)
    data, at = (found.data() if found else b""), 0
    while at + 4 <= len(data):
        form, attribute, value = struct.unpack_from("<BBH", data, at)
        at += 4
        if form == _WITH_BYTES:
            yield attribute, data[at : at + value]
            at += value


def parameters(cubin: bytes, kernel: str) -> Parameters:
    """Read where parameters lie: an entry for each, with its number, its offset and its size."""
    elf = _elf(cubin)
    start, places, threads = 0, {}, None
    for attribute, held in _attributes(elf, f".nv.info.{kernel}"):
        if attribute == PARAM_CBANK:
            _, start, _ = struct.unpack("<IHH", held)
        elif attribute == KPARAM_INFO:
            _, number, offset, about = struct.unpack("<IHHI", held)
            places[number] = offset, about >> 18
        elif attribute == REQNTID:
            threads = struct.unpack("<3I", held)
    return Parameters(start, tuple(places[number] for number in sorted(places)), threads)


HIDDEN = 2  # pointers that Triton puts behind the arguments: memory that its launcher provides
_POINTER = 8
_FLOATS = {2: "<e", 4: "<f", 8: "<d"}


def as_c(
    arguments: Sequence[Any], parameters: Parameters, address: Callable[[np.ndarray], int]
) -> bytes:
    """Write arguments as C passes them: of an array its address, of a number its bytes.

    address : of an array
    NumPy's numbers and records have their own size; Python's numbers take that of the parameter.
    Raises ValueError for another number of arguments, or one that does not fit.
    """
    places = parameters.places
    if len(arguments) > len(places) or not _are_hidden(places[len(arguments) :], parameters):
        raise ValueError(
            f"the kernel takes {len(places)} parameters of {', '.join(str(s) for _, s in places)} "
            f"bytes; {len(arguments)} were given"
        )
    out = bytearray(max((offset + size for offset, size in places), default=0))
    for i, (argument, (offset, size)) in enumerate(zip(arguments, places, strict=False)):
        found = _bytes(argument, size, address)
        if len(found) != size:
            raise ValueError(
                f"argument {i + 1} has {len(found)} bytes ({_told(argument)}), the kernel's "
                f"parameter {size}"
            )
        out[offset : offset + size] = found
    return bytes(out)


def _are_hidden(more: Sequence[tuple[int, int]], parameters: Parameters) -> bool:
    """Say whether parameters may be left out: none, or those of a kernel that Triton made."""
    sizes = [size for _, size in more]
    return not more or (parameters.block is not None and sizes == HIDDEN * [_POINTER])


def _bytes(argument: Any, size: int, address: Callable[[np.ndarray], int]) -> bytes:
    if isinstance(argument, np.ndarray) and argument.ndim:
        return struct.pack("<Q", address(argument))
    if isinstance(argument, (np.generic, np.ndarray)):
        return argument.tobytes()
    if isinstance(argument, (bool, int)):
        return _whole(argument, size)
    if isinstance(argument, float) and size in _FLOATS:
        return struct.pack(_FLOATS[size], argument)
    raise ValueError(f"{argument!r} is no array and no number, and cannot be a parameter")


def _whole(argument: int, size: int) -> bytes:
    try:
        return argument.to_bytes(size, "little", signed=argument < 0)
    except OverflowError:
        raise ValueError(f"{argument} does not fit into a parameter of {size} bytes") from None


def _told(argument: Any) -> str:
    if isinstance(argument, np.ndarray) and argument.ndim:
        return "an array, whose address is passed"
    return f"{argument!r}"


# -------------------------------------------------------------------------------- code

Frames = Sequence[Sequence[Frame]]  # of each instruction


@dataclass(frozen=True, eq=False)
class Code:
    """Code has a listing, and what its compiler knows of a launch of it.

    frames : finds the line of each instruction, and those where it is inlined; none where the
        compiler has kept no lines. To ask takes a second
    block, shared_bytes : of a launch; None where the compiler leaves them to the caller
    """

    listing: Listing
    frames: Callable[[], Frames] = field(repr=False)
    block: tuple[int, ...] | None = None
    shared_bytes: int | None = None


def code_of(
    function: Any, block: int | Sequence[int] | None, arguments: Sequence[Any], architecture: str,
    kernel: str | None = None, max_registers: int | None = None, **options: Any,
) -> Code:  # fmt: skip
    """Return the code of a kernel of Numba, or of what another compiler made; errors as theirs.

    kernel : its name, where a module has several
    """
    made = getattr(function, "asm", None)  # of Triton
    if isinstance(made, Mapping) and "cubin" in made:
        found = of_module(made["cubin"], architecture, kernel)
        return Code(found.listing, found.frames, found.block, function.metadata.shared)
    if isinstance(cubin := getattr(function, "__cubin__", None), bytes):  # of CuTe DSL
        return of_module(cubin, architecture, kernel)
    if not callable(function):
        return of_module(function, architecture, kernel)
    if block is None:
        raise ValueError("block=None is for code whose compiler wrote the block down")
    if max_registers is None:  # which ptxas ignores where it knows the size of a block
        options = {"launch_bounds": math.prod(np.atleast_1d(block).tolist()), **options}
    asked = function, arguments, architecture, max_registers
    code = compiling.listing(*asked, **options)
    return Code(code, lambda: _beside(code, *compiling.with_places(*asked, **options)))


def of_module(code: bytes | str | Path, architecture: str, kernel: str | None = None) -> Code:
    """Return the code of a kernel of a module; ValueError for one of another architecture."""
    found = module(code, architecture)
    name = found.one(kernel)
    read = listing(found, name)
    if read.architecture != architecture:
        raise ValueError(
            f"the code is for {read.architecture}, the GPU executes {architecture}: compile it "
            "for that, or give its PTX"
        )

    def frames() -> Frames:
        places = compiling.frames(found.cubin, name)
        return [places.get(i.address, ()) for i in read.instructions]

    return Code(read, frames, read.parameters.block)


def _beside(code: Listing, named: Listing, places: Mapping[int, Sequence[Frame]]) -> Frames:
    """Find lines for a listing in one that was compiled with them, which may differ a little.

    An instruction that only one of them has belongs to the line of the one before.
    """
    frames = [places.get(i.address, ()) for i in named.instructions]
    ours, theirs = ([i.opcode for i in one.instructions] for one in (code, named))
    if ours == theirs:
        return frames
    found: list[Sequence[Frame]] = [()] * len(ours)
    for block in SequenceMatcher(None, ours, theirs, autojunk=False).get_matching_blocks():
        found[block.a : block.a + block.size] = frames[block.b : block.b + block.size]
    for i in range(1, len(found)):
        found[i] = found[i] or found[i - 1]
    return found


def in_a_row(
    arguments: Sequence[Any], of: Callable[[Any, int | None], list[Any]],
    add: Callable[[np.ndarray], int],
) -> bytes:  # fmt: skip
    """Return the parameters of a kernel of Python, each at a multiple of its size.

    of : `of_numba` or `of_mlir`; add : puts an array into memory and gives its address
    """
    out = bytearray()
    for one in _parts(arguments):
        for value in of(one, add(one) if isinstance(one, np.ndarray) else None):
            out += bytes(-len(out) % value.dtype.itemsize) + value.tobytes()
    return bytes(out)


def _parts(arguments: Iterable[Any]) -> Iterator[Any]:
    """Return arguments, and those inside of tuples in their places."""
    for argument in arguments:
        if isinstance(argument, tuple):
            yield from _parts(argument)
        else:
            yield argument


def of_numba(argument: Any, address: int | None) -> list[Any]:
    """Return the parameters that Numba makes of an argument: nine of an array of two dimensions.

    address : of an array, or of a record; None for a number
    """
    if address is None:
        return _number(argument)
    if argument.ndim == 0 and argument.dtype.names:  # a record
        return [np.uint64(address)]
    itemsize = argument.dtype.itemsize
    sizes = (argument.size, itemsize, address, *argument.shape, *argument.strides)
    return [np.uint64(0), np.uint64(0), *(np.int64(size) for size in sizes)]


def of_mlir(argument: Any, address: int | None) -> list[Any]:
    """Return the parameters of numba-cuda-mlir: seven of an array, with strides in elements."""
    if address is None:
        return _number(argument)
    steps = (stride // argument.dtype.itemsize for stride in argument.strides)
    return [*[np.uint64(address)] * 2, *map(np.int64, (0, *argument.shape, *steps))]


def _number(argument: Any) -> list[Any]:
    """Return the parameters that both make of a number."""
    if isinstance(argument, (bool, np.bool_)):
        return [np.uint8(argument)]
    if isinstance(argument, int):
        return [np.int64(argument)]
    if isinstance(argument, float):
        return [np.float64(argument)]
    if isinstance(argument, (complex, np.complexfloating)):
        part = np.float32 if isinstance(argument, np.complex64) else np.float64
        return [part(argument.real), part(argument.imag)]
    return [argument]

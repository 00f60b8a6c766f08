"""Numba compiles a kernel to PTX, and ptxas that to a cubin, for a GPU that need not be here."""

import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

from gemmlab.device import Capability
from gemmlab.here import halves, numbas
from gemmlab.here.driver import WHEELS, run, tool

# Instructions of one architecture alone, which have to be asked for: "sm_90a".
SPECIFIC = ("wgmma.", "setmaxnreg.")


AUTO = "auto"
NUMBA, MLIR = "numba-cuda", "numba-cuda-mlir"
COMPILERS = {NUMBA: numbas.installed, MLIR: numbas.has_mlir}


def chosen(compiler: str = AUTO) -> str:
    """Return which compiler of `COMPILERS` compiles: with "auto" the first that is installed.

    Raises ValueError for a name that is none of them.
    """
    if compiler != AUTO:
        if compiler not in COMPILERS:
            raise ValueError(f"compiler={compiler!r}; use one of {AUTO}, {', '.join(COMPILERS)}")
        return compiler
    return next((name for name, installed in COMPILERS.items() if installed()), NUMBA)


EXTRAS = {NUMBA: "gemmlab[forecast]", MLIR: "gemmlab[forecast-mlir]"}
INSTALL = {name: f'python -m pip install "{extra}"' for name, extra in EXTRAS.items()}
WHERE = "Linux, Windows; no GPU is needed"


@cache
def missing(compiler: str = AUTO) -> tuple[str, ...]:
    """Name what compiling a kernel and reading its code needs, and is not here."""
    name = chosen(compiler)
    packages = [] if COMPILERS[name]() else [name if compiler == name else " or ".join(COMPILERS)]
    packages += [] if find_spec("elftools") else ["pyelftools"]
    tools = []
    for one in WHEELS:
        try:
            tool(one)
        except RuntimeError:
            tools.append(one)
    return (*packages, *tools)


def lacking(compiler: str = AUTO) -> str:
    """Say what is missing and how to get it, in one line; empty where nothing is."""
    if not (names := missing(compiler)):
        return ""
    return f"there is no {' and no '.join(names)}; {INSTALL[chosen(compiler)]} ({WHERE})"


def check_tools(compiler: str = AUTO) -> None:
    """RuntimeError that says what compiling needs and how to get it, where something is missing."""
    if lacking(compiler):
        raise RuntimeError(f"a kernel is to be compiled, and {lacking(compiler)}")


class Usage(NamedTuple):
    """ptxas says what a kernel takes: of a thread registers and local memory, of a block shared
    [B].
    """

    registers: int
    local_bytes: int
    shared_bytes: int


def assemble(ptx: str, architecture: str, registers: int | None = None) -> tuple[bytes, Usage]:
    """Assemble a PTX text with one kernel: return the cubin, and what the kernel takes.

    architecture : "sm_90", or "sm_90a", which is taken for instructions of one architecture alone
    registers : at most, of a thread; None for as many as ptxas likes
    Raises RuntimeError with the assembler's words where it refuses the text.
    """
    if any(name in ptx for name in SPECIFIC) and not architecture.endswith("a"):
        ptx = re.sub(rf"(\.target {architecture})\b", r"\1a", ptx)
        architecture += "a"
    with tempfile.TemporaryDirectory() as folder:
        source, cubin = Path(folder, "kernel.ptx"), Path(folder, "kernel.cubin")
        source.write_text(ptx, "utf-8")
        limit = [] if registers is None else ["-maxrregcount", str(registers)]
        said = run("ptxas", "-v", "-arch", architecture, source, "-o", cubin, *limit)
        return cubin.read_bytes(), usage(said.stderr + said.stdout)


def usage(text: str) -> Usage:
    """Read the `Usage` that `ptxas -v` prints.

    >>> usage("ptxas info : 8 bytes stack frame, Used 24 registers, 256 bytes smem")
    Usage(registers=24, local_bytes=8, shared_bytes=256)
    """
    patterns = r"Used (\d+) registers", r"(\d+) bytes stack frame", r"(\d+) bytes smem"
    return Usage(*(int(found[1]) if (found := re.search(p, text)) else 0 for p in patterns))


def ptx(function: Callable, signature: tuple, capability: Capability, **options: Any) -> str:
    """Compile a kernel to PTX for a compute capability; neither such a GPU nor CUDA need be here.

    signature : Numba's types; options : those of `numba.cuda.compile_ptx`
    Raises NotImplementedError for functions of 16-bit numbers that `halves` has not.
    """
    with numbas.own() as cuda, standing_in(capability):
        text = cuda.compile_ptx(function, signature, cc=capability, **options)[0]
    if lacked := halves.undefined(text):
        raise NotImplementedError(
            f"{', '.join(lacked)}: Numba-CUDA takes these functions of 16 bits from C++, which is "
            "not compiled here; compute in float32, or take numba-cuda-mlir, which has them"
        )
    return text


@cache
def load() -> None:
    """Load what any kernel is compiled with: copies of this process then find it loaded.

    Where numba-cuda-mlir is alone, each copy loads it.
    """
    if not numbas.installed():
        return
    with numbas.own():
        from numba.cuda.descriptor import cuda_target

        cuda_target.typing_context.refresh()
        cuda_target.target_context.refresh()


@contextmanager
def standing_in(capability: Capability) -> Iterator[None]:
    """Let Numba find a GPU of a compute capability, and no need of NVRTC, while it compiles.

    Numba has an option for the first of these alone, `FORCE_CUDA_CC`. Hence four attributes of its
    modules have other values meanwhile, under the lock that all compiling takes: what other threads
    compile is for the GPU that is there.
    """
    from numba.cuda import config, cuda_paths, dispatcher
    from numba.cuda.core.compiler_lock import global_compiler_lock
    from numba.cuda.cudadrv import nvvm

    stand_in, compile_ir = SimpleNamespace(compute_capability=capability), nvvm.compile_ir

    def compile_halves(llvm: str | list[str], **options: Any) -> bytes:
        texts = [llvm] if isinstance(llvm, str) else llvm
        return compile_ir([halves.defined(text) for text in texts], **options)

    replaced = (
        # NVRTC, 90 MB to download, would say which capabilities there are, and compile nothing.
        (config, "FORCE_CUDA_CC", capability),
        (cuda_paths, "_get_nvrtc_path", lambda: SimpleNamespace(by="not looked for", info=None)),
        # Device functions are compiled for the GPU that is there, whatever `cc` says.
        (dispatcher, "get_current_device", lambda: stand_in),
        # NVRTC would also compile what float16 is computed by.
        (nvvm, "compile_ir", compile_halves),
    )
    with global_compiler_lock:
        before = [getattr(module, name) for module, name, _ in replaced]
        try:
            for module, name, value in replaced:
                setattr(module, name, value)
            yield
        finally:
            for (module, name, _), value in zip(replaced, before, strict=True):
                setattr(module, name, value)


def llvm_and_ptx(
    function: Callable, signature: Any, capability: Capability, device: bool = False,
    **options: Any,
) -> tuple[str, str]:  # fmt: skip
    """Return what Numba makes of a kernel, or of a device function: LLVM's text, and PTX."""
    with numbas.own(), standing_in(capability):
        from numba.cuda import compiler

        code, _ = compiler._compile_pyfunc_with_fixup(
            function, signature, device=device, cc=capability, abi="numba", **options
        )
        return code.get_llvm_str(), code.get_asm_str(cc=capability)


def annotated(
    function: Callable, signature: Any, capability: Capability, **options: Any
) -> str:  # fmt: skip
    """Return the source of a kernel, or of a device function, with the types that Numba infers."""
    with numbas.own(), standing_in(capability):
        from numba.cuda import compiler

        made = compiler.compile_cuda(function, None, signature, cc=capability, **options)
        return str(made.type_annotation)


def disassembled(cubin: bytes, *options: str) -> str:
    """Return what nvdisasm writes of a cubin; "-c": its instructions, "-json": the same as data."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "kernel.cubin")
        file.write_bytes(cubin)
        return run("nvdisasm", *options, file).stdout

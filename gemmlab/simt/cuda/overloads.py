"""Forms of a kernel by types of arguments, and what Numba's compiler makes of them."""

import re
from collections.abc import Iterator, MutableMapping
from typing import Any

import numpy as np

from gemmlab.here import compilers
from gemmlab.model.occupancy import resident_blocks
from gemmlab.simt.builtins.barriers import waits_for_grid
from gemmlab.simt.cuda import compiling, devices
from gemmlab.simt.cuda.signatures import Argument, declared

TYPING = "debug", "lineinfo", "fastmath", "forceinline"  # options of Numba's steps up to types


class Compiled:
    """A kernel, or a device function, for some types of arguments.

    layout : of its arrays: "A" for any, as signatures have it; "C", as launches do
    """

    def __init__(self, kernel: Any, types: tuple[Argument, ...], layout: str = "A") -> None:
        self.kernel, self.argument_types, self.layout = kernel, types, layout

    def max_cooperative_grid_blocks(self, blockdim: Any, dynsmemsize: int = 0) -> int:
        """Blocks that the simulated GPU holds at once, and which so can wait for each other.

        What its registers and its shared arrays of a fixed size take is not known here: a GPU may
        hold fewer.
        """
        gpu, threads = devices.current_device().simulated, int(np.prod(blockdim))
        return gpu.sms * resident_blocks(gpu, threads, dynsmemsize)

    @property
    def cooperative(self) -> bool:
        """Whether the kernel waits for the whole grid."""
        return waits_for_grid(self.kernel.py_func)

    @property
    def code(self) -> compiling.Code:
        """What Numba makes of it; NotImplementedError where that is not installed."""
        given = self.kernel.targetoptions
        options = {name: given[name] for name in compiling.OPTIONS if given.get(name) is not None}
        if given.get("max_registers"):
            options["max_registers"] = given["max_registers"]
        device, options_key = bool(given.get("device")), tuple(sorted(options.items()))
        return compiling.code(self.kernel.py_func, self._numbas_types, device, options_key)

    @property
    def _numbas_types(self) -> tuple:
        given = self.argument_types
        return tuple(compiling.numba_type(a.dtype, a.ndim, self.layout) for a in given)

    @property
    def _usage(self) -> compilers.Usage:
        return self.code.cubin()[1]

    @property
    def regs_per_thread(self) -> int:
        """Registers of a thread, as ptxas chooses them."""
        return self._usage.registers

    @property
    def local_mem_per_thread(self) -> int:
        """Local memory of a thread [B]: local arrays, and registers that did not fit."""
        return self._usage.local_bytes

    @property
    def shared_mem_per_block(self) -> int:
        """Shared memory of a block whose size the source states [B]."""
        return self._usage.shared_bytes

    @property
    def const_mem_size(self) -> int:
        """Constant memory of the kernel's own arrays [B]."""
        found = re.findall(r"\.const .*?\.b8 \S+\[(\d+)\]", self.code.ptx)
        return sum(map(int, found))

    @property
    def max_threads_per_block(self) -> int:
        """Threads of a block that its registers leave room for."""
        gpu = devices.current_device().simulated
        return min(gpu.threads_per_block, gpu.registers_per_sm // max(1, self.regs_per_thread))

    def inspect_types(self, file: Any = None) -> None:
        """Print the source with the types that Numba infers, to a file or to standard output."""
        options = {k: v for k in TYPING if (v := self.kernel.targetoptions.get(k)) is not None}
        text = compiling.annotated(self.kernel.py_func, self._numbas_types, options)
        head = f"{self.kernel.__name__} {self._numbas_types}"
        print(head, "-" * 80, text, "=" * 80, sep="\n", file=file)

    def inspect(self, what: str) -> str:
        """Return its text as "llvm", "asm" (PTX) or "sass" (the GPU's own instructions)."""
        code = self.code
        if what == "sass":
            return compilers.disassembled(code.cubin()[0], "-c")
        return code.llvm if what == "llvm" else code.ptx


class Overloads(MutableMapping):
    """The compiled forms of a kernel by types of arguments: those of Numba, or a signature."""

    def __init__(self, known: dict[tuple[Argument, ...], Compiled]) -> None:
        self.known = known

    def __getitem__(self, types: Any) -> Compiled:
        return self.known[_key(types)]

    def __setitem__(self, types: Any, compiled: Compiled) -> None:
        self.known[_key(types)] = compiled

    def __delitem__(self, types: Any) -> None:
        del self.known[_key(types)]

    def __iter__(self) -> Iterator[tuple[Argument, ...]]:
        return iter(self.known)

    def __len__(self) -> int:
        return len(self.known)

    def __repr__(self) -> str:
        return repr(self.known)


class Compilable:
    """What a kernel or a device function was compiled for can be looked at.

    `inspect_llvm`, `inspect_asm` (PTX) and `inspect_sass` give texts by signature, or that of one;
    `inspect_types` prints the source with types; `get_regs_per_thread` and the like give numbers.
    """

    overloads: Overloads

    def _texts(self, what: str, signature: Any) -> Any:
        if signature is not None:
            return self.overloads[signature].inspect(what)
        return Overloads({types: one.inspect(what) for types, one in self.overloads.known.items()})

    def inspect_types(self, file: Any = None) -> None:
        """Print the source with the types that Numba infers, for each signature."""
        for one in self.overloads.known.values():
            one.inspect_types(file)

    def inspect_llvm(self, signature: Any = None) -> Any:
        """Return LLVM's text."""
        return self._texts("llvm", signature)

    def inspect_asm(self, signature: Any = None) -> Any:
        """Return PTX."""
        return self._texts("asm", signature)

    def inspect_sass(self, signature: Any = None) -> Any:
        """Return the GPU's own instructions."""
        return self._texts("sass", signature)

    def _numbers(self, name: str, signature: Any) -> Any:
        if signature is not None:
            return getattr(self.overloads[signature], name)
        known = self.overloads.known
        if getattr(self, "specialized", False):
            return getattr(next(iter(known.values())), name)
        return Overloads({types: getattr(one, name) for types, one in known.items()})

    def get_regs_per_thread(self, signature: Any = None) -> Any:
        """Return the registers of a thread."""
        return self._numbers("regs_per_thread", signature)

    def get_local_mem_per_thread(self, signature: Any = None) -> Any:
        """Return the local memory of a thread [B]."""
        return self._numbers("local_mem_per_thread", signature)

    def get_shared_mem_per_block(self, signature: Any = None) -> Any:
        """Return the shared memory of a block whose size the source states [B]."""
        return self._numbers("shared_mem_per_block", signature)

    def get_const_mem_size(self, signature: Any = None) -> Any:
        """Return the constant memory of the kernel's own arrays [B]."""
        return self._numbers("const_mem_size", signature)

    def get_max_threads_per_block(self, signature: Any = None) -> Any:
        """Return the threads of a block that registers leave room for."""
        return self._numbers("max_threads_per_block", signature)


def _key(types: Any) -> tuple[Argument, ...]:
    if isinstance(types, tuple) and all(isinstance(t, Argument) for t in types):
        return types
    [key] = declared(types)
    return key

"""What a program asks of a compiled kernel, as far as it can be known without a compiler."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import Any

import numpy as np

from gemmlab.model.occupancy import resident_blocks
from gemmlab.simt.cuda.devices import current_device
from gemmlab.simt.cuda.signatures import Argument, declared


class Compiled:
    """A kernel for some types of arguments."""

    def __init__(self, kernel: Any, types: tuple[Argument, ...]) -> None:
        self.kernel, self.argument_types = kernel, types

    def max_cooperative_grid_blocks(self, blockdim: Any, dynsmemsize: int = 0) -> int:
        """Blocks that the simulated GPU holds at once, and which so can wait for each other.

        What its registers and its shared arrays of a fixed size take is not known here: a GPU may
        hold fewer.
        """
        gpu, threads = current_device().simulated, int(np.prod(blockdim))
        return gpu.sms * resident_blocks(gpu, threads, dynsmemsize)

    def __getattr__(self, name: str) -> Any:
        raise NotImplementedError(
            f"{name} is the compiler's choice, and nothing is compiled on the simulated GPU; "
            "numba.cuda.compile_ptx(function, signature, cc=(9, 0)) compiles without a GPU"
        )


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


def _key(types: Any) -> tuple[Argument, ...]:
    if isinstance(types, tuple) and all(isinstance(t, Argument) for t in types):
        return types
    [key] = declared(types)
    return key

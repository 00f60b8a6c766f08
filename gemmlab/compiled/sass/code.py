"""Code is what a launch executes, whoever compiled it: a kernel of Numba, a cubin, or PTX."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from gemmlab.compiled.sass import compiling, cubins
from gemmlab.compiled.sass.compiling import Frame
from gemmlab.compiled.sass.execution.machine import dim
from gemmlab.compiled.sass.listing import Listing

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
    if not callable(function):
        return of_module(function, architecture, kernel)
    if block is None:
        raise ValueError("block=None is for code whose compiler wrote the block down")
    if max_registers is None:  # which ptxas ignores where it knows the size of a block
        options = {"launch_bounds": math.prod(dim(block)), **options}
    asked = function, arguments, architecture, max_registers
    listing = compiling.listing(*asked, **options)
    return Code(listing, lambda: _beside(listing, *compiling.with_places(*asked, **options)))


def of_module(code: bytes | str | Path, architecture: str, kernel: str | None = None) -> Code:
    """Return the code of a kernel of a module; ValueError for one of another architecture."""
    found = cubins.module(code, architecture)
    name = found.one(kernel)
    listing = cubins.listing(found, name)
    if listing.architecture != architecture:
        raise ValueError(
            f"the code is for {listing.architecture}, the GPU executes {architecture}: compile it "
            "for that, or give its PTX"
        )

    def frames() -> Frames:
        places = compiling.frames(found.cubin, name)
        return [places.get(i.address, ()) for i in listing.instructions]

    return Code(listing, frames, listing.parameters.block)


def _beside(listing: Listing, named: Listing, places: Mapping[int, Sequence[Frame]]) -> Frames:
    """Find lines for a listing in one that was compiled with them, which may differ a little.

    An instruction that only one of them has belongs to the line of the one before.
    """
    frames = [places.get(i.address, ()) for i in named.instructions]
    ours, theirs = ([i.opcode for i in one.instructions] for one in (listing, named))
    if ours == theirs:
        return frames
    found: list[Sequence[Frame]] = [()] * len(ours)
    for block in SequenceMatcher(None, ours, theirs, autojunk=False).get_matching_blocks():
        found[block.a : block.a + block.size] = frames[block.b : block.b + block.size]
    for i in range(1, len(found)):
        found[i] = found[i] or found[i - 1]
    return found

"""A machine launches a product: the simulated GPU does, or a plan for a GPU is made."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

import numpy as np

from gemmlab.device import RECORDED, device as load_device
from gemmlab.here.detection import detect
from gemmlab.instructions import host, tensor_map
from gemmlab.kernels.batched import around
from gemmlab.kernels.kernel import Dim
from gemmlab.multiplication.arrays import Stack
from gemmlab.multiplication.choosing import Choice
from gemmlab.multiplication.plans import WORD, WORKSPACE, Block, Launch, Maps, Plan, Zeros
from gemmlab.simt import simulate

MAP_BYTES = 128  # of a tensor map; it begins at a multiple of 64


@dataclass(frozen=True)
class Step:
    """A launch: what builds its kernel, from what, and how it is launched.

    frozen : keyword arguments of `build`; options : of `cuda.jit`, beside the bound on threads
    shared_bytes : dynamic shared memory of a block [B]
    """

    build: Callable[..., Callable]
    frozen: dict[str, Any]
    grid: Dim
    block: Dim
    shared_bytes: int = 0
    options: dict[str, Any] = field(default_factory=dict)


class Simulated:
    """The simulated GPU, with NumPy's arrays as its memory.

    device : with as many SMs as it has persistent blocks
    """

    capability = None  # it has every instruction

    def __init__(self) -> None:
        self.device = load_device(RECORDED)

    def empty(self, shape: tuple[int, ...], dtype: str) -> np.ndarray:
        """Return an array; it holds NaN or the like, so that what nobody wrote shows."""
        return np.full(shape, np.array(np.nan, dtype) if dtype != "int32" else -1, dtype)

    def zeros(self, shape: tuple[int, ...], dtype: str) -> np.ndarray:
        return np.zeros(shape, dtype)

    def view(self, stack: Stack, dimensions: int = 3) -> np.ndarray:
        """Return a stack, or a matrix alone, as an argument of kernels."""
        told = stack.interface(dimensions)
        return np.asarray(SimpleNamespace(__array_interface__=told, owner=stack.owner))

    def maps(self, arrays: Sequence[np.ndarray], rows: Sequence[int]) -> list[Any]:
        """Return the tensor maps of matrices, for boxes of so many rows each."""
        return [tensor_map(*each) for each in zip(arrays, rows, strict=True)]

    def scratch(self) -> AbstractContextManager:
        """Give memory back at the end that was taken in between."""
        return nullcontext()

    def launch(self, step: Step, *arguments: Any) -> None:
        """Run a kernel; HazardError where it does something wrong."""
        kernel = step.build(**step.frozen)
        simulate(kernel, step.grid, step.block, *arguments, shared_bytes=step.shared_bytes)


class Planning:
    """The launches of a product are noted for the current GPU, compiled, as a `Plan`.

    Arrays are `Block`s: of the workspace, where those of a `scratch` take each other's place, or of
    an operand, whose stack has the number of its address as `owner`.
    """

    def __init__(self) -> None:
        self.device = detect()
        self.capability = self.device.compute_capability
        self.works: list[Zeros | Launch] = []
        self.map_words: list[Maps] = []
        self.words: list[int] = []
        self.places: list[tuple[int, int]] = []  # words to which an address is added, and which
        self.top = self.size = 0

    @contextmanager
    def scratch(self) -> Iterator[None]:
        top = self.top
        yield
        self.top = top

    def empty(self, shape: tuple[int, ...], dtype: str) -> Block:
        """Return an array of the workspace that holds anything."""
        block = Block.rows_after_rows(WORKSPACE, self.top, shape, dtype)
        self.top += rounded(block.bytes)
        self.size = max(self.size, self.top)
        return block

    def zeros(self, shape: tuple[int, ...], dtype: str) -> Block:
        block = self.empty(shape, dtype)
        self.works.append(Zeros(block.offset, block.bytes))
        return block

    def view(self, stack: Stack, dimensions: int = 3) -> Block:
        shape, strides = stack.shape[-dimensions:], stack.strides[-dimensions:]
        return Block(stack.owner, stack.address, shape, strides, "float32")

    def maps(self, arrays: Sequence[Block], rows: Sequence[int]) -> list[Block]:
        """Return the tensor maps of matrices, which a launch writes to the workspace."""
        count = len(arrays) * MAP_BYTES // WORD
        held = self.empty((count,), "int64")
        step = Step(around.build_words, {"count": count}, *around.launch_words())
        self.launch(step, held, (0,) * count)
        self.map_words.append(Maps(len(self.words) - count, tuple(zip(arrays, rows, strict=True))))
        starts = range(held.offset, held.offset + held.bytes, MAP_BYTES)
        return [Block.rows_after_rows(WORKSPACE, at, (MAP_BYTES,), "uint8") for at in starts]

    def launch(self, step: Step, *arguments: Any) -> None:
        """Note a launch."""
        frozen, options = (tuple(sorted(d.items())) for d in (step.frozen, step.options))
        kernel, name = _kernel(step.build, frozen, math.prod(step.block), options)
        compiled = kernel.compile(tuple(map(_type_of, arguments)))
        loaded = host.loaded(compiled)
        if step.shared_bytes:  # more than 48 KiB a block is for those who ask
            host.allow_shared(loaded, detect(), step.shared_bytes)
        grid, block = ((*size, 1, 1)[:3] for size in (step.grid, step.block))
        size, first = (*grid, *block, step.shared_bytes), len(self.words)
        self.works.append(Launch(name, compiled, loaded.function, size, first))
        for argument in arguments:
            self._tell(argument)

    def _tell(self, argument: Any) -> None:
        """Note an argument in words."""
        if isinstance(argument, tuple):
            for each in argument:
                self._tell(each)
        elif isinstance(argument, Block):
            held, addresses = argument.words(host.package())
            self.places += [(len(self.words) + at, argument.of) for at in addresses]
            self.words += held
        elif isinstance(argument, np.float32):
            self.words.append(int(argument.view(np.uint32)))
        else:
            self.words.append(argument)

    def plan(self, choice: Choice) -> Plan:
        """Make a plan of all that was noted."""
        places = np.array(self.places, np.intp).reshape(-1, 2)
        held, maps = np.array(self.words, np.int64), tuple(self.map_words)
        return Plan(choice, tuple(self.works), held, places[:, 0], places[:, 1], maps, self.size)


def rounded(size: int) -> int:
    """Bytes of the workspace for so many: arrays and maps begin at multiples of 128 bytes."""
    return -(-size // MAP_BYTES) * MAP_BYTES


def _type_of(argument: Any) -> Any:
    """Return the type by which Numba compiles for an argument."""
    types = host.cuda().types
    if isinstance(argument, tuple):
        return types.UniTuple(_type_of(argument[0]), len(argument))
    if isinstance(argument, Block):
        layout = "C" if argument.is_contiguous else "A"
        return types.Array(getattr(types, argument.dtype), len(argument.shape), layout)
    return types.float32 if isinstance(argument, np.float32) else types.int64


@lru_cache(maxsize=256)
def _kernel(build: Callable, frozen: tuple, threads: int, options: tuple) -> tuple[Callable, str]:
    """Return a kernel for Numba to compile, made once for these arguments, and its name."""
    bounds, kernel = {"launch_bounds": threads, **dict(options)}, build(**dict(frozen))
    return host.cuda().jit(**bounds)(kernel), kernel.__name__

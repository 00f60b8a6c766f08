"""An SM needs so many cycles for an instruction: facts of a GPU, each with its source.

The table `sm` of a file in `gemmlab/devices` describes the SM of one GPU; `facts` reads it. Those
of an H200 and an H100 were measured. `measured = false` is in the table of a GPU that nobody here
has: what papers and others' microbenchmarks say of it, and for the rest what an H200 has.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any

from gemmlab.device import ReadOnly, Source, names, number, text_of


def _cycles(**options: Any) -> float:
    return field(metadata={"unit": "cycle"}, **options)


def _quantity(unit: str, **options: Any) -> float:
    return field(metadata={"unit": unit}, **options)


@dataclass(frozen=True)
class Facts:
    """Latencies, rates and sizes of one SM.

    An interval is how long a pipe of one scheduler is busy with an instruction; a latency is the
    time from an instruction to one that waits for its result.
    """

    fma_interval: int = _cycles()
    fma_pipes: int = _quantity("pipe", repr=False)  # of a scheduler, for FP32
    product_pipes: int = _quantity("pipe", repr=False)  # of these, for IMAD
    wide_interval: int = _cycles()  # of IMAD with a product of 64 bits
    alu_interval: int = _cycles()
    fp64_interval: int = _cycles()
    xu_interval: int = _cycles()
    uniform_interval: int = _cycles()
    tensor_interval: int = _cycles()
    tensor_short_interval: int = _cycles()  # of HMMA with 8 pairs of half precision
    tensor_half_interval: int = _cycles(repr=False)  # of HMMA that adds in half precision
    tensor_slots: int = _cycles(
        repr=False
    )  # at most, in which a scheduler issues nothing beside an HMMA
    conversion_interval: int = _cycles()  # of I2F
    of_all_interval: int = _cycles()  # of a pipe that all schedulers share
    of_all_queue: int = _cycles()  # of work that may be before it
    store_interval: int = _cycles()  # of a scheduler's way to the LSU, each register that is stored
    wide_stall: float = _quantity("")  # cycles for each of a wide product's stall count

    fp64_latency: int = _cycles()
    xu_latency: int = _cycles()
    tensor_latency: int = _cycles()
    wgmma_columns: int = _quantity("column/cycle")  # of B, of a product of 64 rows and 16 of k
    wgmma_latency: int = _cycles()  # from its last column to the end of the wait for it
    wgmma_reads: float = _quantity("column/cycle")  # of B, by a warpgroup from shared memory
    # The SMs' clock while a quarter, a half, three quarters and all of them multiply tiles.
    tensor_clocks: tuple[float, ...] = _quantity("Hz")  # by `mma.sync`
    wgmma_clocks: tuple[float, ...] = _quantity("Hz")
    tensor_use: float = _quantity("")  # part of the time for which Tensor Cores were busy then
    wgmma_use: float = _quantity("")
    constant_latency: int = _cycles()
    special_latency: int = _cycles()
    reduction_latency: int = _cycles()

    shared_latency: int = _cycles()  # of a load of one wavefront and one register
    l1_latency: int = _cycles()
    l2_latency: int = _cycles()  # where one SM alone asks for its lines
    l2_latency_for_all: int = _cycles()  # where all SMs ask
    dram_latency: int = _cycles()
    dram_spread: int = _cycles()  # less for the nearest lines, and more for the farthest ones
    copy_latency: int = _cycles()  # more, where a load goes to shared memory
    register_latency: int = _cycles()  # more, for each further register of a lane
    wavefront_latency: int = _cycles()  # more, for each further wavefront
    operands_latency: int = _cycles()  # from the LSU's start to where address and data are read
    lsu_queue: int = _quantity("instruction")  # before the LSU, of one scheduler
    lsu_wavefront: int = _cycles()  # of one scheduler's way to the LSU, each wavefront
    wavefront_interval: int = _cycles(repr=False)  # of the pipe of shared memory and L1
    lsu_interval: int = _cycles(repr=False)  # of it, at least, for a warp's addresses
    l1_bytes: int = _quantity("B", repr=False)  # of L1 and shared memory together
    l2_bytes_per_cycle: float = _quantity("B/cycle")  # where all SMs ask, each for other lines
    l2_bytes_at_most: float = _quantity("B/cycle")  # where few ask, or neighbours for the same
    dram_bytes_per_cycle: float = _quantity("B/cycle")  # while written lines leave L2 for others
    dram_stored_per_cycle: float = _quantity("B/cycle")  # while each written line sends another one
    # Latency more while all SMs read, or read and write as much, for 0, 1/4, 1/2, 3/4 and 9/10 of
    # the time that device memory has.
    dram_read_crowd: tuple[float, ...] = _quantity("cycle")
    dram_copy_crowd: tuple[float, ...] = _quantity("cycle")

    block_latency: int = _cycles()  # from the end of a block to the first instruction of the next
    block_interval: int = _cycles()  # from one block of an SM to the next, where a launch begins
    barrier_latency: int = _cycles()  # from the last warp that comes
    barrier_delay: int = _cycles()  # before a warp that comes waits
    barrier_interval: int = _cycles()  # of each warp that comes
    mbarrier_latency: int = _cycles()  # from an arrival to the end of the wait for it

    operand_window: int = _cycles()  # in which an instruction reads all its operands
    shared_reads: int = _quantity("register/cycle")  # that HMMA and others read by the same way

    branch_latency: int = _cycles()  # from a branch that is taken to its target
    line_bytes: int = _quantity("B")  # of instructions that are fetched together
    branch_interval: int = _cycles()  # of each such branch of a scheduler
    line_latency: int = _cycles()  # from there to the line after the target's
    near_lines: int = _quantity("line")  # in a scheduler's own cache of instructions
    near_miss: int = _cycles()  # more, where a branch leads out of it
    far_sets: int = _quantity("set")  # of the SM's cache of instructions
    far_ways: int = _quantity("line")
    far_interval: float = _cycles()  # of each line that the SM's cache lacks
    far_latency: int = _cycles()  # from there until it has it
    ahead: int = _quantity("line")  # fetched before a warp needs them

    measured: bool = field(default=True, repr=False)  # here; else from the literature
    sources: Mapping[str, str] = field(default=None, repr=False, compare=False)

    @property
    def others(self) -> tuple[tuple[str, float], ...]:
        """What a `repr` leaves out and an H200 has not: what is recorded is found without it."""
        left_out = [f.name for f in fields(self) if f.metadata and not f.repr]
        h200 = facts("h200")
        return tuple(
            (name, getattr(self, name))
            for name in left_out
            if getattr(self, name) != getattr(h200, name)
        )


UNITS = {f.name: f.metadata["unit"] for f in fields(Facts) if f.metadata}


@cache
def facts(name: str) -> Facts:
    """Return the facts of the SM of a device; ValueError for a device that has none.

    A table that has `like` names another device, from whose table it takes what it does not say.

    >>> facts("h200").fma_interval
    2
    """
    if name not in known():
        raise ValueError(f"no facts of the SM of {name!r}; there are those of {', '.join(known())}")
    return parse(name, text_of(name))


@cache
def known() -> tuple[str, ...]:
    """Return the names of the devices that have facts."""
    return tuple(name for name in names() if _table(text_of(name)))


def parse(name: str, text: str) -> Facts:
    """Read the SM's table of a device file; ValueError for a number without its unit and source."""
    raw = _table(text)
    while "like" in raw:
        raw = _table(text_of(raw.pop("like"))) | raw
    measured = raw.pop("measured", True)
    if set(raw) != set(UNITS):
        differing = ", ".join(sorted(set(raw) ^ set(UNITS)))
        raise ValueError(f"{name}.toml: missing or unknown in its table sm: {differing}")
    origin: dict[str, Source] = {}
    values = {key: number(name, key, UNITS[key], entry, origin) for key, entry in raw.items()}
    return Facts(
        **{key: tuple(v) if isinstance(v, list) else v for key, v in values.items()},
        measured=measured,
        sources=ReadOnly({key: source.text for key, source in origin.items()}),
    )


def _table(text: str) -> dict[str, Any]:
    import tomllib

    return tomllib.loads(text).get("sm", {})

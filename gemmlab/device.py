"""Devices: what a processor can do and hold, every number with its unit and its source.

One file of ``gemmlab/devices`` describes one GPU; `device` reads it, and `sm.facts` its table of
the SM. Units are SI: FLOP/s, B/s, B, s, Hz. Architectures of GPUs, their names and compute
capabilities, are listed here alone.

>>> architecture("sm_86").generation, architecture("sm_100") > architecture("sm_90")
('Ampere', True)
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from gemmlab.formats import FORMATS, TENSOR_FORMATS

Capability = tuple[int, int]  # major, minor
FMA_SOURCE = "CUDA C++ Programming Guide, Throughput of Native Arithmetic Instructions"


@dataclass(frozen=True, order=True)
class Architecture:
    """The architecture of the GPUs of one compute capability; of two, the newer is the greater.

    generation : NVIDIA's name for it
    fma_per_cycle : FMAs per cycle and SM of the ordinary pipes, by format; empty where not stated.
        Tensor Cores are not in it: their rates differ between products of one capability.
        Source: `FMA_SOURCE`.
    """

    capability: Capability
    generation: str = field(compare=False)
    fma_per_cycle: Mapping[str, int] = field(compare=False, repr=False)

    @property
    def name(self) -> str:
        """The name that assemblers use."""
        return name_of(self.capability)


def name_of(capability: Capability) -> str:
    """Return the name that assemblers use for a compute capability.

    >>> name_of((9, 0))
    'sm_90'
    """
    major, minor = capability
    return f"sm_{major}{minor}"


# Ascending, from the oldest that an instruction needs.
ARCHITECTURES = {
    a.name: a
    for a in (
        Architecture((5, 0), "Maxwell", {}),
        Architecture((5, 3), "Maxwell", {}),
        Architecture((7, 0), "Volta", {"float32": 64, "float64": 32}),
        Architecture((7, 2), "Volta", {"float32": 64, "float64": 32}),
        Architecture((7, 5), "Turing", {"float32": 64, "float64": 2}),
        Architecture((8, 0), "Ampere", {"float32": 64, "float64": 32}),
        Architecture((8, 6), "Ampere", {"float32": 128, "float64": 2}),
        Architecture((8, 7), "Ampere", {"float32": 128, "float64": 2}),
        Architecture((8, 9), "Ada", {"float32": 128, "float64": 2}),
        Architecture((9, 0), "Hopper", {"float32": 128, "float64": 64}),
        Architecture((10, 0), "Blackwell", {"float32": 128, "float64": 64}),
        Architecture((10, 3), "Blackwell", {"float32": 128, "float64": 2}),
        Architecture((12, 0), "Blackwell", {"float32": 128, "float64": 2}),
        Architecture((12, 1), "Blackwell", {"float32": 128, "float64": 2}),
    )
}


def architecture(name: str) -> Architecture:
    """Return the architecture called `name`; ValueError, listing what is known, for another.

    >>> architecture("sm_75").capability
    (7, 5)
    """
    if not isinstance(name, str) or name not in ARCHITECTURES:
        raise ValueError(f"arch={name!r} is not known; use one of {', '.join(ARCHITECTURES)}")
    return ARCHITECTURES[name]


def of_capability(capability: Capability) -> Architecture | None:
    """Return the architecture of this compute capability; None for one that is not listed."""
    return next((a for a in ARCHITECTURES.values() if a.capability == capability), None)


FOLDER = Path(__file__).parent / "devices"
RECORDED = "h200"  # the GPU whose measurements come with gemmlab
LEVELS = ("dram", "l2", "l1", "shared")  # memories that have a bandwidth, the farthest first


class Source(NamedTuple):
    """A source says where a number comes from."""

    unit: str
    text: str


def _quantity(unit: str, **options: Any) -> Any:
    """Return a field that a device file states as ``{ value, unit, source }`` in this unit."""
    return field(metadata={"unit": unit}, **options)


class ReadOnly(dict):
    """A dictionary that stays as it is; it can be copied and pickled, as a `Device` can.

    >>> ReadOnly(a=1).pop("a")
    Traceback (most recent call last):
    ...
    TypeError: what a device says stays as it is; dataclasses.replace makes another device
    """

    def _refuse(self, *arguments: Any, **more: Any) -> NoReturn:
        raise TypeError(
            "what a device says stays as it is; dataclasses.replace makes another device"
        )

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple:
        return ReadOnly, (dict(self),)


@dataclass(frozen=True)
class Device:
    """A processor: what it can compute per second, move per second, and hold.

    A figure that does not apply (a CPU has no shared memory) or has no source is ``None``.
    ``float16``, ``bfloat16`` and ``tf32`` are dense Tensor-Core products accumulated in float32;
    ``float32`` and ``float64`` are FMAs of the ordinary pipes.
    For a CPU an SM is a core, and ``peak`` and ``dram_bandwidth`` are measured.
    """

    name: str
    title: str
    kind: str  # "gpu" or "cpu"
    match: tuple[str, ...] = field(default=(), repr=False)  # the driver's names for this GPU
    compute_capability: tuple[int, int] | None = _quantity("major.minor", default=None)

    sms: int = _quantity("SM", default=1)
    clock: float | None = _quantity("Hz", default=None)  # boost
    tensor_clock: float | None = _quantity("Hz", default=None)  # where Tensor Cores boost less
    flop_per_cycle_per_sm: Mapping[str, int] = _quantity("FLOP/cycle/SM", default=None, hash=False)
    peak: Mapping[str, float] = _quantity("FLOP/s", default=None, hash=False)
    fma_latency_cycles: int | None = _quantity("cycle", default=None)

    dram_bytes: int | None = _quantity("B", default=None)
    dram_bandwidth: float | None = _quantity("B/s", default=None)
    dram_latency: float | None = _quantity("s", default=None)
    dram_read_bandwidth: float | None = _quantity("B/s", default=None)  # of streams, measured
    dram_copy_bandwidth: float | None = _quantity("B/s", default=None)  # both ways together
    dram_write_bandwidth: float | None = _quantity("B/s", default=None)
    l2_bytes: int | None = _quantity("B", default=None)
    l2_bandwidth: float | None = _quantity("B/s", default=None)
    l2_write_bandwidth: float | None = _quantity("B/s", default=None)  # of stores
    l2_tma_bandwidth: float | None = _quantity("B/s", default=None)  # of copies by the TMA
    l2_partial_writes: float | None = _quantity("sector/s", default=None)  # of 32 B, filled in part
    l2_additions: float | None = _quantity("addition/s", default=None)  # atomic ones, in float32
    # Where each lane goes to a line of its own, of all SMs:
    l2_requests: float | None = _quantity("request/s", default=None)  # by loads
    l2_partial_lines: float | None = _quantity("line/s", default=None)  # a word of each stored
    l2_scattered_additions: float | None = _quantity("addition/s", default=None)
    l2_scattered_atomics: float | None = _quantity("addition/s", default=None)  # that return
    l2_partitions: int = _quantity("", default=1)  # a line may be in each
    # of an array to which lanes add anywhere, what L2 holds; None for as much as of loads
    l2_added_bytes: int | None = _quantity("B", default=None)
    dram_access_bytes: int = _quantity("B", default=64)  # moved at once
    dram_scattered_reads: float | None = _quantity("access/s", default=None)
    dram_scattered_writes: float | None = _quantity("access/s", default=None)

    shared_bytes_per_sm: int | None = _quantity("B", default=None)
    shared_bytes_per_block: int | None = _quantity("B", default=None)  # at most, by opting in
    shared_bytes_per_block_default: int | None = _quantity("B", default=None)
    shared_bytes_per_cycle_per_sm: int | None = _quantity("B/cycle/SM", default=None)
    issue_per_cycle_per_sm: int | None = _quantity("instruction/cycle/SM", default=None)

    registers_per_sm: int | None = _quantity("register", default=None)
    registers_per_thread: int | None = _quantity("register", default=None)
    threads_per_sm: int | None = _quantity("thread", default=None)
    threads_per_block: int | None = _quantity("thread", default=None)
    blocks_per_sm: int | None = _quantity("block", default=None)
    warp_size: int | None = _quantity("thread", default=None)

    launch_latency: float | None = _quantity("s", default=None)  # of a launch that does nothing
    launch_interval: float | None = _quantity("s", default=None)  # from one launch to the next
    hand_out_interval: float | None = _quantity(
        "s", default=None
    )  # from one block's start to another's
    block_spread: float | None = _quantity("", default=None)  # of blocks' times over SMs, as a part

    sources: Mapping[str, Source] = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in ("flop_per_cycle_per_sm", "peak", "sources"):
            object.__setattr__(self, name, ReadOnly(getattr(self, name) or {}))

    @property
    def shared_bandwidth(self) -> float | None:
        """Shared-memory bandwidth of the whole device, SMs × clock × bytes per cycle [B/s]."""
        if self.shared_bytes_per_cycle_per_sm is None or self.clock is None:
            return None
        return self.sms * self.clock * self.shared_bytes_per_cycle_per_sm

    @property
    def l1_bandwidth(self) -> float | None:
        """Bandwidth of all L1 caches [B/s]: that of shared memory, as both are one unit of an SM.

        Source: CUDA C++ Programming Guide, Compute Capabilities 7.x and later, "Shared Memory".
        """
        return self.shared_bandwidth

    @property
    def threads(self) -> int | None:
        """Threads that can be resident on the device at once, SMs × threads per SM."""
        return None if self.threads_per_sm is None else self.sms * self.threads_per_sm

    def clock_of(self, dtype: str) -> float | None:
        """Return the boost clock at which the peak of ``dtype`` is stated [Hz]."""
        if dtype in TENSOR_FORMATS and self.tensor_clock is not None:
            return self.tensor_clock
        return self.clock

    def peak_of(self, dtype: str) -> float:
        """Peak arithmetic rate [FLOP/s]; raises ``ValueError`` where the device has none."""
        if dtype not in self.peak:
            raise ValueError(
                f"{self.title} has no peak for dtype {dtype!r}; it has {', '.join(self.peak)}"
            )
        return self.peak[dtype]

    def bandwidth_of(self, level: str) -> float:
        """Bandwidth of the memory level "dram", "l2", "l1" or "shared" [B/s]."""
        if level not in LEVELS:
            raise ValueError(f"unknown memory level {level!r}; the levels are {', '.join(LEVELS)}")
        bandwidth = getattr(self, f"{level}_bandwidth")
        if bandwidth is None:
            raise ValueError(f"no bandwidth is known for memory level {level!r} of {self.title}")
        return bandwidth

    def ops_per_byte(self, dtype: str, level: str = "dram") -> float:
        """Arithmetic intensity at which math and memory take equal time, peak / bandwidth [FLOP/B].

        Work of lower intensity is limited by the memory ``level``, of higher by arithmetic.
        Raises ``ValueError`` for a dtype or level that the device does not have.

        >>> round(device("v100").ops_per_byte("float16"), 1)
        138.9
        """
        return self.peak_of(dtype) / self.bandwidth_of(level)


UNITS = {f.name: f.metadata["unit"] for f in fields(Device) if "unit" in f.metadata}
_PER_DTYPE = ("flop_per_cycle_per_sm", "peak")
_REQUIRED = ("compute_capability", "clock", "dram_bytes", "dram_bandwidth", *_PER_DTYPE)


def names() -> list[str]:
    """Return the names that `device` accepts, one for each file in ``gemmlab/devices``."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def device(name: str | Device) -> Device:
    """Return the device called ``name``; a `Device` is returned as it is.

    Raises ``ValueError`` for an unknown name; `names` lists the known ones.

    >>> d = device("v100")
    >>> d.sms, d.peak["float16"], d.dram_bandwidth
    (80, 125000000000000.0, 900000000000.0)
    """
    if isinstance(name, Device):
        return name
    if not isinstance(name, str) or name not in names():
        raise ValueError(f"unknown device {name!r}; known devices: {', '.join(names())}")
    return _load(name)


def sources(name: str | Device) -> Mapping[str, Source]:
    """Return where each number of a device comes from: field (``peak.float32``) -> (unit, text).

    >>> sources("v100")["dram_bandwidth"].unit
    'B/s'
    """
    return device(name).sources


def text_of(name: str) -> str:
    """Return the text of a device's file."""
    return (FOLDER / f"{name}.toml").read_text("utf-8")


@cache
def _load(name: str) -> Device:
    return parse(name, text_of(name))


def parse(name: str, text: str) -> Device:
    """Read a device file; raises ``ValueError`` for a number without unit and source."""
    import tomllib  # here, because `import gemmlab` needs no device

    raw = tomllib.loads(text)
    raw.pop("sm", None)  # for `sm.facts`
    plain: dict[str, Any] = {"name": name, "kind": "gpu"}
    plain["title"] = raw.pop("title", name)
    plain["match"] = tuple(raw.pop("match", ()))
    origin: dict[str, Source] = {}
    for key, entry in raw.items():
        if key not in UNITS:
            raise ValueError(f"{name}.toml: unknown key {key!r}; known keys: {', '.join(UNITS)}")
        if key in _PER_DTYPE:
            for dtype in entry:
                if dtype not in FORMATS:
                    known = ", ".join(FORMATS)
                    raise ValueError(f"{name}.toml: unknown dtype {key}.{dtype}; known: {known}")
            plain[key] = {
                dtype: number(name, f"{key}.{dtype}", UNITS[key], entry[dtype], origin)
                for dtype in entry
            }
        else:
            plain[key] = number(name, key, UNITS[key], entry, origin)
    missing = [key for key in _REQUIRED if key not in plain]
    if missing:
        raise ValueError(f"{name}.toml: {', '.join(missing)} missing")
    major, minor = str(plain["compute_capability"]).split(".")
    plain["compute_capability"] = (int(major), int(minor))
    return Device(**plain, sources=origin)


def number(name: str, key: str, unit: str, entry: Any, origin: dict[str, Source]) -> Any:
    """Return the value of one ``{ value, unit, source }`` table, whose source goes to ``origin``.

    Raises ``ValueError``, which names the file and the key, for anything else, for another unit,
    and for an empty source.
    """
    if not isinstance(entry, dict) or set(entry) != {"value", "unit", "source"}:
        raise ValueError(f"{name}.toml: {key} must be {{ value, unit, source }}, not {entry!r}")
    if entry["unit"] != unit:
        raise ValueError(f"{name}.toml: {key} must be in {unit!r}, not in {entry['unit']!r}")
    if not str(entry["source"]).strip():
        raise ValueError(f"{name}.toml: {key} has no source")
    origin[key] = Source(unit, entry["source"])
    return entry["value"]

"""GPU architectures: names, generations and compute capabilities. The only list of them.

>>> architecture("sm_86").generation, architecture("sm_100") > architecture("sm_90")
('Ampere', True)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = [
    "ARCHITECTURES",
    "FMA_SOURCE",
    "Architecture",
    "Capability",
    "architecture",
    "name_of",
    "of_capability",
]

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
    """The name that assemblers use for a compute capability.

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
    """The architecture called `name`; ValueError, listing what is known, for another.

    >>> architecture("sm_75").capability
    (7, 5)
    """
    if not isinstance(name, str) or name not in ARCHITECTURES:
        raise ValueError(f"arch={name!r} is not known; use one of {', '.join(ARCHITECTURES)}")
    return ARCHITECTURES[name]


def of_capability(capability: Capability) -> Architecture | None:
    """The architecture of this compute capability; None for one that is not listed."""
    return next((a for a in ARCHITECTURES.values() if a.capability == capability), None)

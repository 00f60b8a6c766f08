"""Predictions stand beside what others measured and published: values with their sources.

They are no records of gemmlab's: nothing but what was printed is known of how they came about.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from gemmlab import Gemm
from gemmlab.device import names

FILE = Path(__file__).with_suffix(".toml")
UNITS = ("FLOP/s", "1")


@dataclass(frozen=True)
class Published:
    """A published value stands with its source.

    what : was measured; device : a name in `gemmlab.device.names()`
    value : in `unit`, SI, or "1" for a ratio; source : where it is printed
    problem : where the source states one
    """

    name: str
    what: str
    device: str
    value: float
    unit: str
    source: str
    problem: Gemm | None = None

    def __post_init__(self) -> None:
        if not (self.what.strip() and self.source.strip()):
            raise ValueError(f"{self.name} says not what was measured, or where it is printed")
        if self.device not in names():
            raise ValueError(f"{self.name}: device {self.device!r} is none of {', '.join(names())}")
        if self.unit not in UNITS:
            raise ValueError(f"{self.name}: unit {self.unit!r} is none of {', '.join(UNITS)}")


@cache
def published() -> dict[str, Published]:
    """Read all published values, by name.

    >>> found = published()["cublas_float16_8192"]
    >>> found.value / 1e12, str(found.problem), found.device
    (289.0, '8192×8192×8192 float16', 'a100_40gb')
    """
    return parse(FILE.read_text("utf-8"))


def parse(text: str) -> dict[str, Published]:
    """Read such a file; ValueError or TypeError for an entry that lacks something."""
    import tomllib  # here, because few need it

    found = {}
    for entry in tomllib.loads(text)["published"]:
        if "problem" in entry:
            entry["problem"] = Gemm(**entry["problem"])
        value = Published(**entry)
        if value.name in found:
            raise ValueError(f"{value.name} is there twice")
        found[value.name] = value
    return found

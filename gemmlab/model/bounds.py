"""The bounds that hold for every implementation, of one product or of arrays of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from gemmlab import Device, device as load_device
from gemmlab.problem import Gemms, Product

# What a resource of `times` is called; L1 and shared memory are told apart in `Prediction`.
RESOURCES = {
    "math": "math", "latency": "latency", "dram": "DRAM", "l2": "L2", "l1": "L1", "issue": "issue",
}  # fmt: skip


def least_times(problem: Product, device: Device) -> dict[str, Any]:
    """Tell how long an ideal implementation needs each resource [s].

    "math" = 2mnk / peak, "dram" = compulsory bytes / bandwidth, "latency" = one round trip to DRAM.
    Raises ValueError for a format without a rate on `device`.
    """
    return {
        "math": problem.flops / device.peak_of(problem.dtype),
        "dram": problem.dram_bytes / device.dram_bandwidth,
        "latency": device.dram_latency or 0.0,
    }


# No memory of a GPU answers sooner: 337 ns on an H200, 350 ns on an H100, the two measured here.
TRIP = 300e-9


def latency_unknown(device: Device, seconds: float) -> bool:
    """Say whether a time is shorter than a latency that is not recorded: it is no prediction then.

    >>> from gemmlab import device
    >>> latency_unknown(device("rtx2060"), 71e-12), latency_unknown(device("h200"), 337e-9)
    (True, False)
    """
    return device.kind == "gpu" and not device.dram_latency and seconds < TRIP


def slowest(times: Mapping[str, Any]) -> Any:
    """Return the longest of `times` [s], for each product: parts that overlap perfectly."""
    return reduce(np.maximum, times.values())


def longest(times: Mapping[str, Any]) -> np.ndarray:
    """Return the key of `times` that is the longest, for each product; of equals the first."""
    which = np.argmax(np.broadcast_arrays(*times.values()), axis=0)
    return np.array(list(times))[which]


class Rates:
    """These rates follow from `flops`, `bytes` and `seconds`, of one prediction or of many."""

    flops: Any
    bytes: Mapping[str, Any]
    seconds: Any

    @property
    def intensity(self) -> Any:
        """Arithmetic intensity at device memory [FLOP/B]."""
        return self.flops / self.bytes["dram"]

    @property
    def flops_per_second(self) -> Any:
        """Predicted rate of useful operations [FLOP/s]."""
        return self.flops / self.seconds


@dataclass(frozen=True, eq=False)
class Predictions(Rates):
    """The model says this of many products on one device: `Prediction`'s fields, as arrays.

    flops : [FLOP]; bytes : traffic by memory level [B]; times : what each resource needs [s]
    """

    problems: Gemms
    device: str
    flops: np.ndarray
    bytes: Mapping[str, np.ndarray]
    times: Mapping[str, np.ndarray]

    @property
    def seconds(self) -> np.ndarray:
        """Predicted durations [s], the longest of `times`."""
        return slowest(self.times)

    @property
    def bottleneck(self) -> np.ndarray:
        """The resource of each that takes longest, a key of `times`."""
        return longest(self.times)

    @property
    def limiter(self) -> np.ndarray:
        """The limiter of each product, in words: "math", "latency" or "DRAM"."""
        return longest({RESOURCES[resource]: time for resource, time in self.times.items()})


def predict_all(problems: Gemms, device: str | Device) -> Predictions:
    """Predict how long each of `problems` takes by an ideal implementation, all at once.

    Each entry is the number that `gemmlab.predict` gives for that product, to the last bit.
    Raises ValueError for an unknown device and for a format without a rate there.

    >>> found = predict_all(Gemms(8192, [128, 8192], 8192, dtype="float16"), "v100")
    >>> found.limiter.tolist()
    ['DRAM', 'math']
    """
    target = load_device(device)
    times = {
        name: np.broadcast_to(seconds, problems.m.shape)
        for name, seconds in least_times(problems, target).items()
    }
    return Predictions(problems, target.name, problems.flops, {"dram": problems.dram_bytes}, times)

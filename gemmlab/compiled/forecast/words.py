"""A forecast is told in words: what a kernel waits for, and what its issue slots were used for."""

from collections import Counter

from gemmlab.compiled.forecast.kernel import Forecast
from gemmlab.compiled.sm.pipes import Kind
from gemmlab.compiled.sm.result import Reason, Result

DONE = {
    Kind.FMA: "float32 arithmetic",
    Kind.INTEGER: "integer arithmetic",
    Kind.FP64: "float64 arithmetic",
    Kind.SPECIAL: "conversions and special functions",
    Kind.TENSOR: "Tensor Core products",
    Kind.SHARED: "accesses to shared memory",
    Kind.GLOBAL: "accesses to global memory",
    Kind.COPY: "copies to shared memory",
    Kind.BARRIER: "barriers",
    Kind.BRANCH: "branches",
    Kind.UNIFORM: "arithmetic for a whole warp at once",
    Kind.OTHER: "other instructions",
}
MEMORIES = {Kind.SHARED: "shared memory", Kind.GLOBAL: "global memory"}
WAITS = {
    Reason.STALL: "the arithmetic before",
    Reason.BARRIER: "the other warps at a barrier",
    Reason.BANK: "a port of the registers",
    Reason.LSU: "a place in the queue of the load/store unit",
    Reason.FETCH: "instructions to be fetched",
    Reason.DISPATCH: "the issue of a Tensor Core product before",
    Reason.IDLE: "a warp: there is none",
}
PARTS = {"dram": "device memory", "l2": "the L2 cache", "blocks": "blocks to be handed out"}
MOST = 3  # uses that are named


def uses(result: Result) -> dict[str, float]:
    """Say what slots issued, as shares of all slots, the largest first."""
    return {DONE[Kind[name.upper()]]: n / result.slots for name, n in _falling(result.used)}


def waits(result: Result) -> dict[str, float]:
    """Say what empty slots waited for, as shares of all slots, the largest first.

    A result is called after what it is the result of, a pipe after what runs on it.
    """
    found: Counter[str] = Counter()
    for reason in Reason:
        by_kind: Counter[Kind] = Counter()
        for kind, count in zip(result.kinds, result.lost[reason], strict=True):
            by_kind[Kind(kind)] += int(count)
        for kind, count in by_kind.items():
            found[_cause(reason, kind)] += count
    return {cause: n / result.slots for cause, n in _falling(found) if n}


def sentence(forecast: Forecast) -> str:
    """Say what a launch waits for most, and what its issue slots are used for."""
    if forecast.bottleneck != "sm":
        alone = forecast.times["sm"] / forecast.times[forecast.bottleneck]
        part = PARTS[forecast.bottleneck]
        return f"It waits mostly for {part}: an SM would be done after {alone:.0%} of that time."
    used = uses(forecast.result)
    told = ", ".join(f"{share:.0%} {name}" for name, share in list(used.items())[:MOST])
    does = f"{sum(used.values()):.0%} of the issue slots issue an instruction ({told})"
    for cause, share in waits(forecast.result).items():
        return f"{does}; the others wait mostly for {cause} ({share:.0%})."
    return f"{does}."


def _cause(reason: Reason, kind: Kind) -> str:
    if reason is Reason.SCOREBOARD:
        return MEMORIES.get(kind, DONE[kind])
    if reason is Reason.PIPE:
        return f"the pipe of {DONE[kind]}"
    return WAITS.get(reason, reason.name.lower().replace("_", " "))


def _falling(counts: dict[str, int]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: -item[1])

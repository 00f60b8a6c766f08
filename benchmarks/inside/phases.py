"""What a block goes through, from the clocks of its warps at their marks.

Cycles of one SM: (blocks, warps, marks), from its first mark on, -1 where a warp has no mark.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

PHASES = {
    "gap": "from the end of the block before to the first mark of this one",
    "start": "from there to the first tile",
    "turn": "from one tile to the next, the mean",
    "last": "from the last tile to the end of the products",
    "store": "from there until C is stored",
    "whole": "from the first mark, or the end of the tile before, until C is stored",
}
QUANTILES = 0.1, 0.5, 0.9  # over SMs and launches
NONE = -1


def padded(clocks: Sequence[Sequence[Sequence[int]]]) -> np.ndarray:
    """Make an array of clocks, by block and warp, where warps have different numbers of marks."""
    most = max(len(warp) for block in clocks for warp in block)
    return np.array([[[*w, *[NONE] * (most - len(w))] for w in block] for block in clocks])


def phases(clocks: np.ndarray, rounds: int, resident: int) -> dict[tuple[int, str], float]:
    """Return the cycles of each phase of an SM's blocks, by the round of blocks and the phase.

    Of a block it is the median of its warps, of a round the mean of its blocks. Warps that do not
    store, producers, have no phases.
    rounds : of tiles of C that each block has; resident : blocks at a time
    """
    ends = np.sort(clocks.max(axis=(1, 2)))
    found: dict[tuple[int, str], list[float]] = {}
    for number, block in enumerate(clocks):
        counts = (block >= 0).sum(axis=1)
        warps = block[counts == counts.max()][:, : counts.max()]
        each = (warps.shape[1] - 1) // rounds
        for tile in range(rounds):
            before = warps[:, tile * each]
            marks = warps[:, tile * each + 1 : (tile + 1) * each + 1]
            told = {
                "start": marks[:, 0] - before,
                "turn": (marks[:, -3] - marks[:, 0]) / (each - 3),
                "last": marks[:, -2] - marks[:, -3],
                "store": marks[:, -1] - marks[:, -2],
                "whole": marks[:, -1] - before,
            }
            if number >= resident:
                told["gap"] = warps[:, 0].min() - ends[number - resident]
            for phase, cycles in told.items():
                key = (number // resident + tile, phase)
                found.setdefault(key, []).append(float(np.median(cycles)))
    return {key: float(np.mean(values)) for key, values in found.items()}


def alike(clocks: np.ndarray, simulated: np.ndarray) -> bool:
    """Say whether an SM had the blocks, and its warps the marks, of the simulated one."""
    return len(clocks) == len(simulated) and np.array_equal(
        (clocks >= 0).sum(axis=2), (simulated >= 0).sum(axis=2)
    )


def rows_of_phases(
    kernel: str, sms: Iterable[np.ndarray], simulated: np.ndarray, rounds: int, resident: int
) -> list[dict]:
    """Return a row for each round and phase: what was measured, by quantiles, and simulated."""
    every = [phases(sm, rounds, resident) for sm in sms]
    made = phases(simulated, rounds, resident)
    return [
        {
            "kernel": kernel, "round": number, "phase": phase,
            "measured": _rounded(np.quantile([of[number, phase] for of in every], QUANTILES)),
            "simulated": round(made[number, phase], 1),
        }
        for number in range(max(n for n, _ in made) + 1)
        for phase in PHASES
        if (number, phase) in made
    ]  # fmt: skip


def rows_of_warps(kernel: str, sms: Sequence[np.ndarray], simulated: np.ndarray) -> list[dict]:
    """Return a row for each block and warp: its marks, measured by quantiles, and simulated."""
    low, middle, high = np.quantile(np.stack(sms), QUANTILES, axis=0).round().astype(int)
    return [
        {
            "kernel": kernel, "block": block, "warp": warp,
            **{
                name: of[block, warp, : int((made >= 0).sum())].tolist()
                for name, of in (("low", low), ("median", middle), ("high", high))
            },
            "simulated": made[made >= 0].tolist(),
        }
        for block, warps in enumerate(simulated)
        for warp, made in enumerate(warps)
    ]  # fmt: skip


def _rounded(values: np.ndarray) -> list[float]:
    return [round(float(value), 1) for value in values]

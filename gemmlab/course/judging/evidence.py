"""What wrong results have in common, where no known mistake gives just these."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from gemmlab.course.judging.matrices import Run

# Of all results in the same way, or of none.
_THROUGHOUT = {"not-finite", "all-zeros", "by-a-factor", "result-turned", "places-mixed"}
ENOUGH = 4  # elements, to see a pattern in
HARDLY_ANY = 0.9  # of the elements are wrong: the rest may be right by chance


def of_runs(runs: list[Run]) -> str:
    """The diagnosis of several results, of which one at least is wrong."""
    failing = [run for run in runs if run.wrong.any()]
    right = [run for run in runs if not run.wrong.any()]
    telling = [run for run in failing if run.result.size >= ENOUGH] or failing
    alike = {of_array(run.reference, run.result) for run in telling}
    if len(alike) == 1 and alike <= _THROUGHOUT:
        return alike.pop()
    if not any((run.wrong & ~run.edges).any() for run in failing) and any(
        not run.edges.all() for run in failing
    ):
        return "edges-only"
    if all(run.ragged_k for run in failing) and not all(run.ragged_k for run in right):
        return "ragged-k"
    found = of_array(telling[-1].reference, telling[-1].result)
    return "right-in-part" if found == "wrong-values" and right else found


def of_array(reference: np.ndarray, result: np.ndarray) -> str:
    """The diagnosis of one result, (rows, columns)."""
    wrong = ~(result == reference)
    if not np.isfinite(result).all():
        return "not-finite"
    if not result.any() and reference.any():
        return "all-zeros"
    if _factor(reference, result):
        return "by-a-factor"
    if min(result.shape) > 1:
        if result.shape == reference.T.shape and np.array_equal(result, reference.T):
            return "result-turned"
        if np.array_equal(np.sort(result, axis=None), np.sort(reference, axis=None)):
            return "places-mixed"
        for axis, name in ((1, "rows-wrong"), (0, "columns-wrong")):
            lines = wrong.any(axis=axis)
            if wrong.all(axis=axis)[lines].all() and not lines.all():
                return name
    return "wrong-values" if wrong.mean() > HARDLY_ANY else "right-in-part"


def _factor(reference: np.ndarray, result: np.ndarray) -> float | None:
    """The factor between the result and the reference, if there is one for all elements."""
    there = reference != 0
    if there.sum() < 2 or result[~there].any():
        return None
    ratios = result[there] / reference[there]
    return float(ratios[0]) if np.allclose(ratios, ratios[0], rtol=1e-12, atol=0) else None

"""A fixed set of random kernels with what a GPU computes for them.

    python -m tests.agreement.cases tests/data/h200_agreement.npz

runs the set with Numba-CUDA on the GPU of this machine and stores, for each case, the source, the
launch, the arguments and both outputs: the file says all that is needed to run it again.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable, Sequence
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from agreement.grammar import PARAMETERS, Case, generate  # noqa: E402

from gemmlab.backends.timing import version  # noqa: E402

SEED = 20
STORED = ROOT / "tests" / "data" / "h200_agreement.npz"
WHOLE, ROUNDED = 28, 14  # cases in which nothing rounds, and cases with arbitrary floats

Launch = Callable[[Case, list[Any]], None]


@cache
def cases() -> tuple[Case, ...]:
    """The set: first those whose every result is exact, then those that round."""
    kinds = [True] * WHOLE + [False] * ROUNDED
    return tuple(generate(random.Random(SEED + i), whole=w, most=96) for i, w in enumerate(kinds))


def on_gpu(case: Case, arguments: list[Any]) -> None:
    """Run a case with Numba-CUDA; the arrays change in place."""
    from numba import cuda

    cuda.jit(case.function())[case.grid, case.block](*arguments)


def gpu() -> dict[str, str]:
    """Where the outputs come from."""
    from numba import cuda

    device = cuda.get_current_device()
    name = device.name.decode() if isinstance(device.name, bytes) else device.name
    return {"device": name, "compute_capability": str(device.compute_capability)}


def record(
    path: str | Path,
    chosen: Sequence[Case] | None = None,
    launch: Launch = on_gpu,
    provenance: Callable[[], dict[str, str]] = gpu,
) -> None:
    """Run the chosen cases, else all, with `launch` and store everything in an .npz file."""
    arrays: dict[str, np.ndarray] = {}
    texts = []
    for number, case in enumerate(cases() if chosen is None else chosen):
        arguments = case.fresh()
        for name in PARAMETERS:
            arrays[f"{number}.{name}"] = np.asarray(case.arguments[name])
        launch(case, arguments)
        results = dict(zip(PARAMETERS, arguments, strict=True))
        arrays[f"{number}.out.after"] = results["out"]
        arrays[f"{number}.fout.after"] = results["fout"]
        texts.append({"source": case.source, "grid": case.grid, "block": case.block})
    about = {
        **provenance(),
        "date": date.today().isoformat(),
        **{package: version(package) for package in ("numpy", "numba", "numba-cuda")},
    }
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"about": about, "cases": texts})
    np.savez_compressed(path, text=np.frombuffer(text.encode(), np.uint8), **arrays)


def recorded(path: str | Path) -> tuple[dict[str, str], list[tuple[Case, np.ndarray, np.ndarray]]]:
    """(provenance, (case, out, fout) for each case) of a file that `record` wrote."""
    with np.load(path) as stored:
        text = json.loads(stored["text"].tobytes())
        found = []
        for number, one in enumerate(text["cases"]):
            arguments = {name: stored[f"{number}.{name}"] for name in PARAMETERS}
            arguments |= {"k": int(arguments["k"]), "alpha": arguments["alpha"][()]}
            case = Case(one["source"], tuple(one["grid"]), tuple(one["block"]), arguments)
            found.append((case, stored[f"{number}.out.after"], stored[f"{number}.fout.after"]))
    return text["about"], found


if __name__ == "__main__":
    record(sys.argv[1] if len(sys.argv) > 1 else STORED)

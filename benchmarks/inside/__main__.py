"""Timelines inside kernels: simulated with no GPU, then measured by the SMs' own clocks.

    python -m benchmarks.inside predict FILE     what is to be measured, before it is
    python -m benchmarks.inside measure FILE OUT.json
    python -m benchmarks.inside since FILE       what later code simulates

The first FILE, predicted.json beside this module, has the simulated clocks and the cubins that they
are of: those bytes run on the GPU. What ships is gemmlab/recorded/h100_sxm/inside.json; the last
one is predicted_since.json. `python -m benchmarks.forecast.pages` makes tables and the picture.
"""

from __future__ import annotations

import argparse
import lzma
import sys
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.forecast.written import origin
from benchmarks.inside.cases import CASES, DEVICE, Case
from benchmarks.inside.phases import alike, padded, rows_of_phases, rows_of_warps
from gemmlab.measure import store


def predicted(case: Case) -> dict[str, Any]:
    """Compile a case's kernel without and with its marks, execute both and simulate them."""
    from benchmarks.inside import simulated

    kernels = {"bare": case.kernel, "marked": case.marked}
    built = {name: simulated.built(case, kernel) for name, kernel in kernels.items()}
    return {
        "kernel": case.name,
        **{f"{n}_seconds": float(f"{simulated.seconds(case, k):.6g}") for n, k in kernels.items()},
        **{f"{n}_code": one.sha256 for n, one in built.items()},
        **{f"{n}_registers": one.code.registers for n, one in built.items()},
        "resident": simulated.executed(case, case.marked).share.resident,
        "clocks": simulated.clocks(case),
        **{f"{n}_cubin": b64encode(lzma.compress(one.cubin)).decode() for n, one in built.items()},
    }


def predict(out: Path, names: list[str], with_code: bool = True) -> None:
    """Write what is to be measured; FileExistsError where it is written already.

    with_code : keep the cubins
    """
    if out.exists():
        raise FileExistsError(f"{out} is there already; what was written down stays as it was")
    rows = []
    for name in names:
        made = predicted(CASES[name])
        rows.append({k: v for k, v in made.items() if with_code or not k.endswith("cubin")})
        told = {k: v for k, v in rows[-1].items() if k != "clocks" and not k.endswith("cubin")}
        print(told, flush=True)
    store.write(out, origin(DEVICE.name), {"rows": rows})


def measure(told: Path, out: Path, names: list[str]) -> None:
    """Measure what was predicted, and write both."""
    from benchmarks.inside.measured import measured
    from gemmlab.here.detection import detect
    from gemmlab.here.driver import stamp
    from gemmlab.measure.backends import gpu

    before = store.read(told, {"rows": dict})
    tables: dict[str, list] = {"launches": [], "phases": [], "warps": []}
    for row in before.tables["rows"]:
        if row["kernel"] not in names:
            continue
        case, made = CASES[row["kernel"]], padded(row["clocks"])
        cubins = {n: lzma.decompress(b64decode(row[f"{n}_cubin"])) for n in ("bare", "marked")}
        found, sms = measured(case, cubins)
        chosen = [sm for clocks in sms if alike(sm := _cut(clocks, made), made)]
        tables["launches"].append(
            {
                "kernel": case.name,
                "problem": vars(case.problem),
                "tiling": str(case.tiling),
                "sms": len(chosen),
                **found,
                **{f"predicted_{n}_seconds": row[f"{n}_seconds"] for n in ("bare", "marked")},
                "code": row["marked_code"],
                "resident": row["resident"],
                "rounds": case.rounds,
            }
        )
        tables["phases"] += rows_of_phases(case.name, chosen, made, case.rounds, row["resident"])
        tables["warps"] += rows_of_warps(case.name, chosen, made)
    known = gpu.provenance()
    provenance = {
        "device": detect().name, "device_title": detect().title,
        **stamp("date", "python", "numpy"), **{x: known[x] for x in ("driver", "cuda", "l2")},
        "predicted": before.provenance["date"],
        "predictor_sha256": before.provenance["predictor_sha256"],
        "facts_sha256": before.provenance["facts_sha256"],
    }  # fmt: skip
    store.write(out, provenance, tables)


def _cut(clocks: np.ndarray, like: np.ndarray) -> np.ndarray:
    """Drop the room that is left in a row; no warp has marks there."""
    return clocks[:, :, : like.shape[2]]


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser("benchmarks.inside", description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=("predict", "measure", "since"))
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--kernels", default=",".join(CASES), help="(default: %(default)s)")
    given = parser.parse_args(argv)
    names = given.kernels.split(",")
    if given.what == "predict":
        predict(*given.files, names)
    elif given.what == "measure":
        measure(*given.files, names)
    else:
        predict(*given.files, names, with_code=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())

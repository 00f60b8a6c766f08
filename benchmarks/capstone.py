"""Five entries for each shape of chapter 14: measured beside predicted, in which order.

    python -m benchmarks.capstone OUT.json         on a GPU: needs Numba-CUDA, no compiler of ours
    python -m benchmarks.capstone --forecasts      where there is a compiler: writes the predictions
    python -m benchmarks.capstone --logs           those of the entries alone

`--forecasts` judges and predicts the entries of `benchmarks.samples.capstone_entries` and the
course's kernels: gemmlab/course/worklog/ keeps them in worked.json and beside.json. The other form
times the entries of the square and of the skinny shape and writes OUT.json: it ends
with status 1 where an entry is wrong, and says where the order of two
measured times is not that of the predicted ones.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.samples.capstone_entries import Tried, entries
from gemmlab import Gemm, kernels, predict_library, predict_rung, worklog
from gemmlab.here import files
from gemmlab.here.driver import stamp
from gemmlab.kernels import own
from gemmlab.measure import backends
from gemmlab.measure.measurement import duration

GPUS, BESIDE, WORKED = worklog.GPUS, worklog.BESIDE, worklog.WORKED
FASTER = 4  # times, of the last entry over the first


def forecasts() -> None:
    """Predict the course's kernels, and keep that."""
    beside: dict[str, dict[str, dict[str, float]]] = {}
    for name, shape in worklog.SHAPES.items():
        beside[name] = {}
        for rung in kernels.LADDER:
            found = {gpu: predict_rung(shape.problem, gpu, rung).seconds for gpu in GPUS}
            beside[name][rung.name] = found
            print(name, rung.name, *map(duration, found.values()), flush=True)
        beside[name][kernels.REFERENCE.name] = library(shape.problem)
    files.put(BESIDE, (json.dumps(beside, indent=1) + "\n").encode())


def worked() -> None:
    """Judge and predict the entries, and keep their logs."""
    logs = {}
    for name in worklog.SHAPES:
        with tempfile.TemporaryDirectory() as folder:
            log = worklog.open(name, folder)
            for tried in entries(name):
                said = {key: getattr(tried, key) for key in ("changed", "expected", "came")}
                print(log.add(tried.kernel, **launch(tried, name), **said), flush=True)
            logs[name] = json.loads(log.path.read_bytes())
    files.put(WORKED, (json.dumps(logs, indent=1, ensure_ascii=False) + "\n").encode())


def launch(tried: Tried, shape: str) -> dict[str, Any]:
    """The arguments of `own` and `Log.add` for an entry."""
    return {"tile": tried.tilings[shape], "grid": tried.grid, "block": tried.block}


def library(problem: Gemm) -> dict[str, float]:
    """Predict cuBLAS where its tiles are recorded."""
    found = {}
    for gpu in GPUS:
        try:
            found[gpu] = predict_library(problem, gpu).seconds
        except LookupError as error:
            print(error)
    return found


def measured(out: Path) -> int:
    """Time the entries, and say in which order they come."""
    found, wrong, status = stamp("date"), [], 0
    for name, log in json.loads(WORKED.read_text("utf-8")).items():
        shape, rows = worklog.SHAPES[name], []
        if shape.batch > 1:
            continue
        for tried, entry in zip(entries(name), log["entries"], strict=True):
            rung = own(tried.kernel, **launch(tried, name))
            made = backends.run(rung, shape.problem, "gpu")
            seconds = entry["judged"]["seconds"]
            gpu = made.device if made.device in seconds else GPUS[0]
            rows.append((entry["name"], seconds[gpu], made.seconds))
            status |= not made.passed
            times = f"predicted {duration(seconds[gpu])} ({gpu}), measured {duration(made.seconds)}"
            off = made.seconds / seconds[gpu] - 1
            print(f"{name} {entry['name']}: {times}, {off:+.0%}{'' if made.passed else ', WRONG'}")
        order = [sorted(rows, key=lambda row: row[i]) for i in (1, 2)]
        same = order[0] == order[1]
        wrong += [] if same else [name]
        times = rows[0][2] / rows[-1][2]
        print(f"{name}: the order is {'the same' if same else 'another'}; last {times:.1f} × first")
        status |= times < FASTER
        found[name] = [
            dict(zip(("entry", "predicted", "measured"), row, strict=True)) for row in rows
        ]
        found["gpu"] = made.device_title
    for name in wrong:
        print(f"{name}: predicted and measured order differ")
    files.put(out, (json.dumps(found, indent=1) + "\n").encode())
    return int(status)


def main(argv: list[str] | None = None) -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.capstone", description=__doc__)
    parser.add_argument("out", nargs="?", type=Path, metavar="OUT.json")
    parser.add_argument("--forecasts", action="store_true")
    parser.add_argument("--logs", action="store_true")
    options = parser.parse_args(argv)
    if options.forecasts:
        forecasts()
    if options.forecasts or options.logs:
        worked()
        return 0
    if options.out is None:
        parser.error("say OUT.json, --forecasts or --logs")
    return measured(options.out)


if __name__ == "__main__":
    sys.exit(main())

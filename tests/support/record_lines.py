"""The lines of records as they stand in their files, read without `gemmlab.measure.records`."""

import json
import statistics

from tests.support.paths import ROOT

H200 = ROOT / "gemmlab" / "recorded" / "h200"


def lines(rung, m, n=None, k=None):
    """What is recorded of `rung` on an H200 for m = n = k, or m×n×k, in the order of the file."""
    found = map(json.loads, (H200 / f"{rung}.jsonl").read_text("utf-8").splitlines())
    sizes = {"m": m, "n": n or m, "k": k or m}
    return [line for line in found if line.get("problem") == sizes]


def nanoseconds(line):
    """The median of a line's samples."""
    return line["shortest_ns"] + statistics.median(line["over_ns"])


def time(rung, n, block=None):
    """The median time [ns] with the tiles `block`, of a rung that has no others."""
    (line,) = (
        line for line in lines(rung, n) if block is None or line["tiling"] == {"block": list(block)}
    )
    return nanoseconds(line)

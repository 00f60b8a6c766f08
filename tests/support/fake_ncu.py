"""A stand-in for Nsight Compute: it prints the recorded counters of a piece of `counters`."""

import sys

from benchmarks.hardware.checks import counters
from benchmarks.hardware.profiler import TRIAL
from benchmarks.hardware.store import recorded


def row(*cells):
    print(",".join(f'"{cell}"' for cell in cells))


if __name__ == "__main__":
    module, launch, check, piece = sys.argv[-4:]
    assert (module, launch) == ("-m", "benchmarks.hardware.launch")
    names = sys.argv[sys.argv.index("--metrics") + 1].split(",")
    of = {f"{m}.sum": name for name, several in counters.METRICS.items() for m in several}
    print("==PROF== Connected")
    row("ID", "Kernel Name", *names)
    row("", "", *("unit" for name in names))
    row(0, f"{TRIAL}_1", *("7" for name in names))  # as gemmlab launches it first
    for number, (case, one) in enumerate(recorded("h200", check)[piece].measured.items(), 1):
        row(number, case, *(f"{one['counters'][of[name]]:,}" for name in names))

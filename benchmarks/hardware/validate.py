"""Compare the library with the GPU of this machine: every check, in pieces that resume.

    python run.py validate [CHECK ...] [--seconds N] [--again] [--record]
    python -m benchmarks.hardware.validate ...      the same, where the packages are installed

Each piece that is done is kept in `.validation/<device>/`, for the sources as they are: a second
call goes on where the first stopped, and a change of the sources begins anew. One line a check says
how many pieces and values were compared and how many differ, and the first differences follow.

The exit status is 0 if nothing differs, 1 if something differs or fails, 2 without a GPU, and 3 if
nothing differs so far, but pieces are left.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import os
import re
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks import ROOT
from benchmarks.hardware import machine, store
from benchmarks.hardware.check import Check, Result, UnavailableError
from benchmarks.hardware.checks import CHECKS
from benchmarks.hardware.workers import spread
from gemmlab.device import Device, names
from gemmlab.here.detection import cores, detect
from gemmlab.here.driver import gpu_status
from gemmlab.instructions import host

STATE = ROOT / ".validation"
PROCESSES = 16  # at most: each compiles for itself and has a context on the GPU
CONTEXT_BYTES = 1 << 30  # of the GPU's memory, for one of them
# Profilers of one GPU wait for each other; a piece under the sanitizer is five programs at once.
FEWER = {"ncu": lambda count: min(4, count), "compute-sanitizer": lambda count: -(-count // 4)}


def examine(task: tuple[str, str]) -> Result:
    """Measure a piece of a check on this machine's GPU and compare it."""
    check, piece, device = CHECKS[task[0]], task[1], detect()
    began = time.monotonic()
    try:
        measured = check.measure(piece, device)
    except UnavailableError as reason:
        return Result(piece, left_out=str(reason))
    found = check.compare(piece, measured, device)
    return Result(
        piece,
        check.kept(measured) if check.kept else {},
        machine.origin(check.tool),
        found.compared,
        found.differing,
        round(time.monotonic() - began, 2),
        tuple(found.texts),
    )


# ------------------------------------------------------------------------------------------- state


def fingerprint() -> str:
    """The start of the SHA-256 of what a result depends on: sources, driver and packages."""
    folders = ("gemmlab", "benchmarks")
    files = (f for folder in folders for f in sorted((ROOT / folder).rglob("*.py")))
    found = hashlib.sha256()
    for part in (*files, *sorted((ROOT / "gemmlab").rglob("*.toml"))):
        found.update(part.read_bytes())
    known = machine.origin()
    found.update(repr([known[k] for k in ("device", "driver", "numba", host.package())]).encode())
    return found.hexdigest()[:12]


@dataclass
class Progress:
    """The pieces of one check on a device, and the results that there are, kept in `folder`."""

    check: Check
    folder: Path
    pieces: Mapping[str, str]  # and why a piece is left out, "" if it is not
    results: dict[str, Result] = field(default_factory=dict)

    @property
    def left(self) -> list[str]:
        """Pieces that are still to be done, those that failed before among them."""
        return [p for p, reason in self.pieces.items() if not reason and p not in self.results]

    def path(self, piece: str) -> Path:
        """Where the result of a piece is kept."""
        name = re.sub(r"[^\w.-]+", "_", piece)
        return self.folder / f"{list(self.pieces).index(piece):03}_{name}"

    def resume(self, again: bool) -> None:
        """Read the results that are kept, or forget them."""
        for piece in self.left:
            if again:
                file, _ = store.files(self.path(piece))
                file.unlink(missing_ok=True)
            self.results |= store.read(self.path(piece))

    def add(self, result: Result) -> None:
        """Note a result, and keep it unless it is to be tried again."""
        self.results[result.piece] = result
        if not result.failed and not result.left_out:
            store.write(self.path(result.piece), [result])


def progress(check: Check, device: Device, state: Path) -> Progress:
    """A check on a device, none of it done; without its tool all pieces are left out."""
    pieces = check.pieces(device)
    if check.tool and machine.tool(check.tool) is None:
        reason = f"{check.tool} is neither on the PATH nor in {machine.CUDA}"
        pieces = dict.fromkeys(pieces, reason)
    return Progress(check, state / check.name, pieces)


# ------------------------------------------------------------------------------------------ report


def line(one: Progress) -> str:
    """A check in one line."""
    results = one.results.values()
    done = sum(not r.failed and not r.left_out for r in results)
    there = sum(not reason for reason in one.pieces.values())
    compared, differing = (
        sum(getattr(r, n) or 0 for r in results) for n in ("compared", "differing")
    )
    failed = sum(bool(r.failed) for r in results)
    seconds = sum(r.seconds or 0 for r in results)
    return (
        f"{one.check.name:15}{f'{done}/{there}':>8} pieces{compared:>13,} compared"
        f"{differing:>8,} differ{failed:>4} failed{seconds:>8.1f} s"
    )


def details(one: Progress) -> list[str]:
    """What differs, what failed, and what was left out of a check."""
    told = []
    for result in one.results.values():
        told += [f"{result.piece}: {text}" for text in result.texts]
        told += [f"{result.piece}: failed: {result.failed}"] if result.failed else []
    reasons = Counter(reason for reason in one.pieces.values() if reason)
    reasons.update(r.left_out for r in one.results.values() if r.left_out)
    told += [f"{n} left out: {reason}" for reason, n in reasons.items()]
    return ["    " + text.strip().replace("\n", "\n        ") for text in told]


def say(one: Progress) -> None:
    print("\n".join([line(one), *details(one)]), flush=True)


def status(done: Iterable[Progress]) -> int:
    """The exit status, as the module says."""
    done = list(done)
    if any(r.failed or r.differing for one in done for r in one.results.values()):
        return 1
    return 3 if any(one.left for one in done) else 0


def record(one: Progress, device: Device) -> None:
    """Write a check's results as those recorded on a device, if all are there."""
    there = [one.results.get(p, Result(p, left_out=why)) for p, why in one.pieces.items()]
    if one.check.kept is None or not one.results:
        return
    if device.name not in names():
        print(f"{one.check.name}: not recorded, since gemmlab/devices has no {device.name}.toml")
        return
    if one.left or any(r.failed for r in there):
        print(f"{one.check.name}: not recorded, since pieces are missing")
        return
    store.write(store.RECORDED / device.name / one.check.name, there)
    print(f"{one.check.name}: recorded in {store.RECORDED / device.name}")


# ----------------------------------------------------------------------------------------- running


def validate(chosen: list[Progress], processes: int, until: float) -> None:
    """Do what is left of the checks; print each as it is done."""
    for tool, group in itertools.groupby(chosen, lambda one: one.check.tool):
        by_name = {one.check.name: one for one in group}
        tasks = [(name, piece) for name, one in by_name.items() for piece in one.left]
        waiting = Counter(name for name, _ in tasks)
        for name, one in by_name.items():
            if name not in waiting:
                say(one)
        count = FEWER.get(tool, int)(processes)
        with closing(spread(examine, tasks, min(count, len(tasks)), until)) as results:
            for (name, piece), result, failed in results:
                by_name[name].add(result or Result(piece, failed=failed))
                waiting[name] -= 1
                if not waiting[name]:
                    say(by_name[name])
        for name, pieces in waiting.items():
            if pieces:
                say(by_name[name])


def arguments(argv: list[str]) -> argparse.Namespace:
    known = "\n".join(f"  {check.name:15}{check.about}" for check in CHECKS.values())
    parser = argparse.ArgumentParser(
        "run.py validate",
        description="Compare the library with the GPU of this machine.",
        epilog=f"checks:\n{known}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("checks", nargs="*", metavar="CHECK", help="only these; default: all")
    parser.add_argument("--seconds", type=float, metavar="N", help="begin nothing after N seconds")
    parser.add_argument("--again", action="store_true", help="do again what is done")
    parser.add_argument("--record", action="store_true", help="keep the results in the repository")
    parser.add_argument("--state", type=Path, default=STATE, help="folder of what is done")
    parser.add_argument("--processes", type=int, metavar="N", help="that work at the same time")
    given = parser.parse_args(argv)
    for name in given.checks:
        if name not in CHECKS:
            parser.error(f"there is no check {name!r}; there are: {', '.join(CHECKS)}")
    return given


def main(argv: list[str]) -> int:
    began = time.monotonic()
    given = arguments(argv)
    gpu = gpu_status()
    if not gpu.works:
        print(f"no GPU works here, and there is nothing to compare with: {gpu.reason}")
        return 2
    # Processes share the cores already; a library that starts threads in each would slow them all.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that what was begun is ended
    device = detect()
    most = min(PROCESSES, cores(), max(1, device.dram_bytes // CONTEXT_BYTES))
    processes = most if given.processes is None else max(1, given.processes)
    folder = given.state / device.name / fingerprint()
    chosen = [
        progress(check, device, folder)
        for name, check in CHECKS.items()
        if not given.checks or name in given.checks
    ]
    for one in chosen:
        one.resume(given.again)
    print(f"{device.title}, driver {gpu.driver}; {processes} processes; kept in {folder}")
    until = began + given.seconds if given.seconds is not None else float("inf")
    try:
        validate(chosen, processes, until)
    except KeyboardInterrupt:
        print("interrupted; the same command goes on from here")
    if given.record:
        for one in chosen:
            record(one, device)
    code, left = status(chosen), sum(len(one.left) for one in chosen)
    said = ("nothing differs", "there are differences", "", f"{left} pieces are left")[code]
    print(f"{said}; {time.monotonic() - began:.0f} s")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

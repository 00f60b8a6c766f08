"""A script or a module, run as `python SCRIPT` does, with the simulated GPU in Numba's place."""

from __future__ import annotations

import os
import runpy
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from gemmlab.programs.account import Account
from gemmlab.programs.forecasts import FirstCalls, LaunchForecast, forecasts
from gemmlab.programs.in_place import in_place_of_numba
from gemmlab.simt.cuda.kernels import watching

NOT_THERE = 2  # Python's own exit status for a script that it cannot open
INTERRUPTED = 130


@dataclass
class Outcome:
    """How a program ended.

    status : the exit status that Python would have given it
    account : what its kernels did; numba : whether Numba is installed beside the simulated GPU
    device : the GPU for which its launches are predicted, if any; predicted : their times there
    """

    target: str
    arguments: tuple[str, ...]
    status: int = 0
    numba: bool = True
    account: Account = field(default_factory=Account)
    device: str | None = None
    predicted: list[LaunchForecast] = field(default_factory=list)


def run(
    target: str, arguments: Sequence[str] = (), module: bool = False, device: str | None = None
) -> Outcome:
    """Run the script `target`, or the module of that name, with its `arguments`.

    device : the GPU for which the first launch of each kind is predicted when all has ended
    What it raises is printed as Python does, without the frames of gemmlab that called it.
    """
    outcome, first_calls = Outcome(target, tuple(arguments), device=device), FirstCalls()
    if not module and not Path(target).exists():
        print(f"gemmlab: there is no file {target!r}", file=sys.stderr)
        outcome.status = NOT_THERE
        return outcome
    argv, first = sys.argv, sys.path[0]
    sys.argv = [target, *arguments]
    sys.path[0] = os.getcwd() if module else str(Path(target).resolve().parent)
    try:
        keep = first_calls.keep if device else lambda call: None
        with in_place_of_numba() as outcome.numba, watching(outcome.account.add, keep):
            outcome.status = _status(target, module)
    finally:
        sys.argv, sys.path[0] = argv, first
    if device:
        outcome.predicted = forecasts(first_calls.calls.values(), device)
    return outcome


def _status(target: str, module: bool) -> int:
    """The exit status of the program; Python's rules for what it raises."""
    try:
        if module:
            runpy.run_module(target, run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(target, run_name="__main__")
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    except BaseException as error:
        kept = _of_the_program(error.__traceback__)
        traceback.print_exception(type(error), error, kept)
        return INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1
    return 0


def _of_the_program(trace: TracebackType | None) -> TracebackType | None:
    """The traceback from the program's first frame on."""
    ours = (__file__, runpy.__file__, "<frozen runpy>")
    while trace is not None and trace.tb_frame.f_code.co_filename in ours:
        trace = trace.tb_next
    return trace

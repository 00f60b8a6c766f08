"""Open the course in JupyterLab, as `run.py lab` does: `python -m lab [JupyterLab arguments]`."""

import os
import signal
import sys


def stop_early(*_) -> None:
    """End on Ctrl-C while JupyterLab is still being loaded; later it has a handler of its own."""
    print("gemmlab: interrupted before JupyterLab had started", file=sys.stderr, flush=True)
    os._exit(130)


signal.signal(signal.SIGINT, stop_early)  # before the imports, which take a second or two

from . import start  # noqa: E402

sys.exit(start.main(sys.argv[1:]))

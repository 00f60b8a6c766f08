"""The process that judges one notebook, inside its walls: ``python -m`` this, with a job at hand.

The job comes as JSON on standard input: the notebook, its exercises, and for each what its check
draws from. Each outcome goes out as a line of JSON, on what was standard output; answers have
neither, since their copies close all files.
"""

from __future__ import annotations

import base64
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

from gemmlab.course.grading import walls


def main(do: Callable[[dict[str, Any], TextIO], None] | None = None) -> int:
    """Do the job inside the walls; it is to judge a notebook if nothing else is said."""
    job = json.loads(sys.stdin.buffer.read())
    out = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    null = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(null, stream)
    package = Path(__file__).resolve().parents[2]
    compiled = Path(job["compiled"]) if job["compiled"] else None
    around = walls.stand(Path(job["home"]), package, compiled)
    say(out, "walls", [list(around.stand), around.why_not])
    if do:
        do(job, out)
    elif "notebook" in job:
        job["notebook"] = base64.b64decode(job["notebook"])
        _judge(job, out)
    say(out, "end", None)
    return 0


def _judge(job: dict[str, Any], out: TextIO) -> None:
    """Judge the exercises of a notebook that are not done, and say which begins before it does."""
    from gemmlab.course.grading import submission
    from gemmlab.course.grading.judged import judged

    say(out, "begin", "")
    try:
        read = submission.read(job["notebook"])
    except (submission.UnreadableError, RecursionError, MemoryError) as error:
        say(out, "unreadable", str(error) or "nested too deeply")
        return
    say(out, "asked", sorted(read.asked))
    for name in sorted(set(read.asked) & set(job["only"] or read.asked)):
        if name not in job["done"]:
            walls.sweep()
            say(out, "begin", name)
            say(out, "judged", judged(read, name, job["keys"][name]).data)


def say(out: TextIO, kind: str, what: Any) -> None:
    """Say something of a kind to the process that waits for it."""
    print(json.dumps([kind, what]), file=out, flush=True)


if __name__ == "__main__":
    sys.exit(main())

"""The process that judges one notebook, inside its walls: ``python -m`` this, with a job at hand.

The job comes as JSON on standard input: the notebook, its exercises, and for each what its check
draws from; or a log of chapter 14, and the place of the entry to judge. Each outcome goes out as a
line of JSON, on what was standard output; answers have neither, since their copies close all files.
"""

import base64
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any, TextIO

from gemmlab.course.grading import walls


def main() -> int:
    """Do the job inside the walls, if there is one."""
    job = json.loads(sys.stdin.buffer.read())
    out = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    null = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(null, stream)
    package = Path(__file__).resolve().parents[2]
    compiled = Path(job["compiled"]) if job["compiled"] else None
    around = walls.stand(Path(job["home"]), package, compiled)
    _say(out, "walls", [list(around.stand), around.why_not])
    if "log" in job:
        _judge_entry(job, out)
    elif "notebook" in job:
        job["notebook"] = base64.b64decode(job["notebook"])
        _judge(job, out)
    _say(out, "end", None)
    return 0


def _judge(job: dict[str, Any], out: TextIO) -> None:
    """Judge the exercises of a notebook that are not done, and say which begins before it does."""
    from gemmlab.course.grading import submission
    from gemmlab.course.grading.judged import judged

    _say(out, "begin", "")
    try:
        read = submission.read(job["notebook"])
    except (submission.UnreadableError, RecursionError, MemoryError) as error:
        _say(out, "unreadable", str(error) or "nested too deeply")
        return
    _say(out, "asked", sorted(read.asked))
    for name in sorted(set(read.asked) & set(job["only"] or read.asked)):
        if name not in job["done"]:
            walls.sweep()
            _say(out, "begin", name)
            _say(out, "judged", judged(read, name, job["keys"][name]).data)


def _judge_entry(job: dict[str, Any], out: TextIO) -> None:
    """Judge one entry of a log."""
    from gemmlab.course.worklog.league import judge_text
    from gemmlab.course.worklog.log import entries_of

    shape, entries = entries_of(base64.b64decode(job["log"]), "the file")
    found = judge_text(entries[job["place"]], shape, job["seed"])
    _say(out, "judged", asdict(found))


def _say(out: TextIO, kind: str, what: Any) -> None:
    """Say something of a kind to the process that waits for it."""
    print(json.dumps([kind, what]), file=out, flush=True)


if __name__ == "__main__":
    sys.exit(main())

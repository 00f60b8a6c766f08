"""The process that judges one log of a league, inside the walls of a grade."""

from __future__ import annotations

import base64
import sys
from dataclasses import asdict
from typing import Any, TextIO

from gemmlab.course.grading import worker
from gemmlab.course.grading.definitions import RefusedError
from gemmlab.course.judging import drawing
from gemmlab.course.judging.apart import NotJudged
from gemmlab.course.worklog.entries import Entry, rung_of_text
from gemmlab.course.worklog.judging import Judged, judge
from gemmlab.course.worklog.log import entries_of
from gemmlab.course.worklog.shapes import Shape


def judge_text(entry: Entry, shape: Shape, seed: str) -> Judged:
    """What is found of an entry's text; for a process behind walls."""
    try:
        with drawing.seeded(f"{shape.name}/{seed}"):
            return judge(rung_of_text(entry), shape)
    except RefusedError as refused:
        return Judged(refused.diagnosis, (("Refused", str(refused)),))
    except NotJudged as busy:
        return Judged("not-judged", (("Stopped", str(busy)),))
    except Exception as error:
        return Judged("not-judged", (("Error", f"{type(error).__name__}: {error}"),))


def _judge_log(job: dict[str, Any], out: TextIO) -> None:
    shape, entries = entries_of(base64.b64decode(job["log"]), "the file")
    for number, entry in enumerate(entries):
        if number >= job["begin"]:
            worker.say(out, "judged", [number, asdict(judge_text(entry, shape, job["seed"]))])


if __name__ == "__main__":
    sys.exit(worker.main(_judge_log))

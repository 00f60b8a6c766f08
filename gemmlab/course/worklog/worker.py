"""The process that judges one log of a league, inside the walls of a grade."""

from __future__ import annotations

import base64
import sys
from dataclasses import asdict
from typing import Any, TextIO

from gemmlab.course.grading import worker
from gemmlab.course.worklog.league import judge_text
from gemmlab.course.worklog.log import entries_of


def _judge_log(job: dict[str, Any], out: TextIO) -> None:
    shape, entries = entries_of(base64.b64decode(job["log"]), "the file")
    for number, entry in enumerate(entries):
        if number >= job["begin"]:
            worker.say(out, "judged", [number, asdict(judge_text(entry, shape, job["seed"]))])


if __name__ == "__main__":
    sys.exit(worker.main(_judge_log))

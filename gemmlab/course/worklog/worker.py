"""The process that judges one entry of a league, inside the walls of a grade."""

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
    found = judge_text(entries[job["place"]], shape, job["seed"])
    worker.say(out, "judged", asdict(found))


if __name__ == "__main__":
    sys.exit(worker.main(_judge_log))

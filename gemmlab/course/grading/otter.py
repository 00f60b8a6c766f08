"""A chapter as an assignment of otter-grader, which this library judges in otter's place.

``python -m gemmlab.course.grading.otter 04 FOLDER`` writes the notebook that ``otter assign``
takes: the chapter as it is, and a hidden test of each exercise, which fails by itself. `Judge`, a
plugin that the notebook names, hands each submission to the process that ``gemmlab grade`` uses,
and gives otter an empty notebook to run: no line of a submission runs in otter's own kernel. Points
and reasons then take the place of what the tests have said.
"""

import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gemmlab.course.grading.choices import SEED
from gemmlab.course.grading.in_place import Assignment, asked_for, outcomes
from gemmlab.here import files

PLUGIN = "gemmlab.course.grading.otter.Judge"
FAILS = f"'not judged: {PLUGIN} has not run'"  # of which otter expects no output
TESTS = "tests"  # otter's own folder beside a submission


def source(made: Assignment) -> dict[str, Any]:
    """A chapter's notebook as otter's source: raw cells say what is a question and what its test.

    Their content is YAML, of which JSON is a part.
    """
    judge = {PLUGIN: {"seed": made.seed, "rubric_file": made.rubric}}
    settings = {
        "init_cell": False,
        "export_cell": False,
        "run_tests": False,  # there is no solution that could pass them
        "generate": {
            "plugins": [judge],
            "show_hidden": True,  # to students, once a teacher publishes the points
            "force_public_test_summary": False,
        },
    }
    cells = [_raw("ASSIGNMENT CONFIG", "config", settings)]
    for cell, exercise in made.cells():
        if not exercise:
            cells.append(cell)
            continue
        name = cell["id"]
        question = {"name": name, "points": made.most(exercise), "check_cell": False}
        test = {**cell, "id": f"{name}-test", "source": f"# HIDDEN\n{FAILS}", "outputs": []}
        cells += [_raw("BEGIN QUESTION", name, question), cell, _raw("BEGIN TESTS", name), test]
        cells += [_raw("END TESTS", name), _raw("END QUESTION", name)]
    return {**made.notebook, "cells": cells}


def _raw(kind: str, of: str, settings: dict[str, Any] | None = None) -> dict[str, Any]:
    said = f"\n{json.dumps(settings, indent=1, ensure_ascii=False)}" if settings else ""
    own = f"{of}-{kind.lower().replace(' ', '-')}"
    return {"cell_type": "raw", "id": own, "metadata": {}, "source": f"# {kind}{said}"}


class Judge:
    """A plugin of otter, which judges a submission, and leaves otter nothing of it to run."""

    def __init__(self, submission_path: str | None, metadata: dict, plugin_config: dict[str, Any]):
        self.submission_path = submission_path  # None while an assignment is made
        self.seed = plugin_config.get("seed", SEED)
        self.rubric_file = plugin_config.get("rubric_file")
        self.content = b""

    def before_execution(self, submission: Any) -> Any:
        """Keep what was handed in, and hand otter an empty notebook, in an empty folder.

        A zipped submission may bring modules, which otter's kernel would import for its own.
        """
        self.content = json.dumps(submission).encode()
        for path in Path(self.submission_path).parent.iterdir():
            if path.is_dir() and not path.is_symlink():
                if path.name != TESTS:
                    shutil.rmtree(path)
            else:
                path.unlink()
        kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
        return type(submission)(
            cells=[], metadata=type(submission)(kernelspec=kernel), nbformat=4, nbformat_minor=5
        )

    def after_grading(self, results: Any) -> None:
        """Write points and reasons over what the tests have found in the empty notebook."""
        judged = outcomes(self.content, list(results.results), self.seed, self.rubric_file)
        for name, one in judged.items():
            results.update_score(name, one.points)
            for case in results.results[name].test_case_results:
                case.passed, case.message = one.passed, one.said
                case.test_case.success_message = one.said


def main(argv: Sequence[str] | None = None) -> int:
    """Write the source of an assignment into a folder."""
    made = asked_for("otter", argv)
    target = made.folder / made.name
    files.put(target, json.dumps(source(made), indent=1).encode())
    print(f"Written: {target}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""A class's folder: what learners get, what they do not, and the commands in it."""

import json
import os
import subprocess
import tomllib

import pytest
import yaml

from gemmlab import cli
from gemmlab.course import exercise_modules
from gemmlab.course.exercises import get
from gemmlab.course.grading import command, rubric
from gemmlab.course.judging import source
from gemmlab.course.teaching import classroom
from gemmlab.course.teaching.classroom import WHEN, WHOM, assignment, workflow

SEED = "herbst, Gruppe 'B' $HOME"


@pytest.fixture
def made(tmp_path, no_sync):
    folder = tmp_path / "a class"
    classroom.new(folder, ("01", "04"), SEED)
    return folder


def test_learners_get_skeletons_without_outputs_and_a_first_cell(made):
    [one, four] = sorted((made / "hand_out").glob("*.ipynb"))
    for path, chapter in ((one, "01"), (four, "04")):
        cells = json.loads(path.read_text("utf-8"))["cells"]
        assert WHOM in "".join(cells[0]["source"])
        assert WHEN in "".join(cells[0]["source"])
        code = [cell for cell in cells if cell["cell_type"] == "code"]
        assert all(c["outputs"] == [] and c["execution_count"] is None for c in code)
        text = {cell["id"]: "".join(cell["source"]) for cell in cells}
        names = [name for name in exercise_modules() if name.startswith(chapter)]
        for name in names:
            task = get(name).task
            answered = text[f"ex{name.partition('.')[2]}"]
            assert get(name).skeleton in answered
            assert not any(source.solution(answer) in answered for answer in task.answers)


def test_notebooks_are_valid():
    nbformat = pytest.importorskip("nbformat")
    name, content = assignment("04")
    assert name == "04_shared_memory_tiling.ipynb"
    nbformat.validate(nbformat.reads(content.decode(), as_version=4))


def test_the_seed_is_in_one_file_that_is_not_handed_out(made):
    having = [p for p in made.rglob("*") if p.is_file() and b"herbst" in p.read_bytes()]
    assert [path.relative_to(made).as_posix() for path in having] == [classroom.SEED]
    if os.name == "posix":
        assert (made / "teacher").stat().st_mode & 0o077 == 0


def test_settings_name_files_that_are_there(made):
    found = classroom.read_class(made)
    assert found.chapters == ("01", "04")
    assert found.seed_file.read_text("utf-8") == f"{SEED}\n"
    assert rubric.read(found.rubric) == rubric.read()


def stub(folder, status=0):
    """A `gemmlab` that says how it was called, and the environment that finds it."""
    tool = folder / "bin" / "gemmlab"
    tool.parent.mkdir()
    tool.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@"\nexit {status}\n', "utf-8")
    tool.chmod(0o755)
    return os.environ | {"PATH": f"{tool.parent}:{os.environ['PATH']}"}


posix = pytest.mark.skipif(os.name != "posix", reason="these are scripts of a Unix shell")


def test_its_readme_names_commands_that_there_are(made):
    told = (made / "README.md").read_text("utf-8")
    assert "`python3 run.py book --slides 01 04`" in told
    assert f"sh {classroom.GRADE}" in told


@posix
def test_grade_sh_calls_grade_with_the_class_s_settings(made, tmp_path):
    (made / "submissions").mkdir()
    script = ["sh", str(made / classroom.GRADE)]
    answer = subprocess.run(script, capture_output=True, text=True, env=stub(tmp_path), cwd="/")
    called = answer.stdout.splitlines()
    assert called[:4] == ["grade", str(made.resolve() / "submissions"), "--only", "01,04"]
    assert called[4:6] == ["--seed-file", classroom.SEED]
    assert called[6:] == ["--rubric", classroom.RUBRIC, "--csv", "teacher/grades.csv",
                          "--html", "teacher/report"]  # fmt: skip
    asked = cli._parser().parse_args(called)
    asked.seed_file = made / asked.seed_file
    assert command.seed(asked) == SEED


@posix
@pytest.mark.parametrize("status", [0, 1])
def test_the_workflow_puts_the_table_into_the_summary(tmp_path, status):
    [job] = yaml.safe_load(workflow(["01", "04"]))["jobs"].values()
    [script] = [step["run"] for step in job["steps"] if step.get("name") == "Grade"]
    (tmp_path / "repository").mkdir()
    (tmp_path / "repository" / "04.ipynb").write_text("{}", "utf-8")
    summary = tmp_path / "summary"
    env = stub(tmp_path, status) | {
        "RUNNER_TEMP": str(tmp_path), "GITHUB_ACTOR": "ann", "GITHUB_STEP_SUMMARY": str(summary),
    }  # fmt: skip
    # As GitHub calls bash for `shell: bash`.
    shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
    ended = subprocess.run(shell, env=env, cwd=tmp_path / "repository", capture_output=True)
    assert ended.returncode == status, ended.stderr
    called = ["grade", f"{tmp_path}/in", "--only", "01,04", "--csv", "grades.csv"]
    assert summary.read_text("utf-8").splitlines() == ["```", *called, "```"]
    assert (tmp_path / "in" / "ann" / "04.ipynb").is_file()
    cli._parser().parse_args(called)


def test_a_folder_that_is_there_is_left_as_it_is(tmp_path, capsys):
    (tmp_path / "mine").write_text("mine", "utf-8")
    asked = ["class", "new", str(tmp_path), "--chapters", "04", "--seed", "x"]
    assert cli.main(asked) == 1
    assert f"{tmp_path} is there already" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


@pytest.mark.parametrize("seed", ["", "  ", "two\nlines", " x"])
def test_a_seed_is_a_line_of_text(tmp_path, seed):
    with pytest.raises(ValueError, match="is no line of text"):
        classroom.new(tmp_path / "new", ("04",), seed)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["new", "x", "--chapters", "4,05", "--seed", "x"], "no chapter '4'; use 00, 01"),
        (["new", "x", "--chapters", ",", "--seed", "x"], "no chapter ','; use 00, 01"),
        (["new", "x", "--chapters", "04"], "--seed"),
        (["new", "x", "--chapters", "04", "--seed", "x", "--hours", "3"], "3 (choose from"),
        (["new", "x", "--chapters", "04", "--seed", "x", "--weeks", "0"], "'0' is not a whole"),
        (["exam", "--chapters", "01", "--seed", "x", "--questions", "-1"], "'-1' is not a whole"),
        (["teach"], "choose from"),
    ],
)
def test_what_cannot_be_asked_for_is_quoted(arguments, told, capsys):
    with pytest.raises(SystemExit) as caught:
        cli.main(["class", *arguments])
    assert caught.value.code == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (None, "is no class"),
        ("chapters = [", "no TOML"),
        ('chapters = ["4"]\nseed_file = "a"\nrubric = "b"', "chapters=['4']; use some of 00, 01"),
        ('chapters = ["04"]\nrubric = "b"', "seed_file=None; use the name of a file"),
        ('chapter = "04"', "chapter is not known; use chapters, seed_file, rubric"),
    ],
)
def test_settings_that_are_wrong_are_quoted(tmp_path, text, told):
    if text is not None:
        (tmp_path / classroom.SETTINGS).write_text(text, "utf-8")
    with pytest.raises(ValueError) as caught:
        classroom.read_class(tmp_path)
    assert told in str(caught.value)


def test_new_writes_the_plan_that_was_asked_for(tmp_path, capsys, no_sync):
    for name, options, heads in (
        ("a", [], ["## 2 hours", "## 4 hours", "## 8 hours", "## 10 weeks"]),
        ("b", ["--hours", "4"], ["## 4 hours"]),
        ("c", ["--weeks", "3"], ["## 3 weeks"]),
    ):
        folder = tmp_path / name
        asked = ["new", str(folder), "--chapters", "05", "--seed", "x", *options]
        assert cli.main(["class", *asked]) == 0
        lines = (folder / "syllabus.md").read_text("utf-8").splitlines()
        assert [line for line in lines if line.startswith("## ")] == heads
        assert tomllib.loads((folder / "class.toml").read_text("utf-8"))["chapters"] == ["05"]
    assert "sh " in capsys.readouterr().out

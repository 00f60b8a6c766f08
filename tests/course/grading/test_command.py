"""``gemmlab grade`` as it is called: what it prints and writes, and its status."""

import pytest

from gemmlab import cli, grading
from gemmlab.course.grading import command, processes
from gemmlab.course.grading.judged import Judged
from gemmlab.course.grading.processes import Found, Grader
from gemmlab.course.grading.walls import Walls
from tests.course.grading.notebooks import cells, write

EVERY = ("contract", "small", "cases")


@pytest.fixture
def graded(monkeypatch, tmp_path, no_sync):
    """Two students' notebooks, and a grader that knows what is in them."""

    def one(self, content):
        if b"broken" in content:
            return Found(fault="no notebook")
        names = ["01.1", "01.2", "02.1"] if b"more" in content else ["01.1", "01.2"]
        return Found(names, {n: Judged(n, "passed", "passed", "", EVERY, EVERY) for n in names})

    monkeypatch.setattr(Grader, "one", one)
    monkeypatch.setattr(Grader, "walls", lambda self: Walls(("memory",), "no namespaces here"))
    monkeypatch.setattr(Grader, "prepare", lambda self: None)
    monkeypatch.setattr(command, "lacking", lambda: "there is no ptxas")
    write(tmp_path / "in", "anna", cells("more"))
    write(tmp_path / "in", "ben", cells("x = 1"))
    write(tmp_path / "in", "cleo", cells("y = 1"))
    return tmp_path / "in"


def test_it_prints_the_table_and_says_what_holds(graded, capsys):
    assert cli.main(["grade", str(graded)]) == 0
    out, err = capsys.readouterr()
    assert "anna         1      1      ·      ·   2 of 4" in out
    assert err.startswith("Walls: each notebook has limits of memory; none against files, network")
    assert "no namespaces here" in err
    assert "drawn from the seed 'gemmlab', which everybody knows" in err
    assert "there is no ptxas" in err
    assert "less than half of the notebooks have them: 02.1" in err
    assert "anna, anna.ipynb" in err


def test_pages_without_matplotlib_are_refused_before_anything_is_graded(
    graded, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(command, "find_spec", lambda name: None)
    assert cli.main(["grade", str(graded), "--html", str(tmp_path / "h")]) == 1
    assert "pip install matplotlib" in capsys.readouterr().err
    assert not (tmp_path / "h").exists()


def test_it_writes_what_it_is_asked_for(graded, tmp_path, capsys):
    options = ["--csv", str(tmp_path / "g.csv"), "--html", str(tmp_path / "h"), "--title", "HW 1"]
    more = ["--only", "01.1,02", "--seed", "ours", "--format", "canvas", "--workers", "1"]
    assert cli.main(["grade", str(graded), *options, *more]) == 0
    assert (tmp_path / "g.csv").read_text().splitlines()[1] == "    Points Possible,,,,,5"
    assert (tmp_path / "g.seconds.csv").is_file()
    assert (tmp_path / "h" / "index.html").is_file()
    assert "everybody knows" not in capsys.readouterr().err


def test_a_file_that_cannot_be_read_makes_the_status_1(graded, capsys):
    write(graded, "dora", b"broken")
    assert cli.main(["grade", str(graded)]) == 1
    assert "1 unreadable" in capsys.readouterr().out


def test_an_interrupt_is_one_line_that_says_how_far_it_came(graded, capsys, monkeypatch, tmp_path):
    def every(self, contents, workers):
        yield 0, self.one(contents[0]())
        raise KeyboardInterrupt

    monkeypatch.setattr(Grader, "every", every)
    assert cli.main(["grade", str(graded), "--csv", str(tmp_path / "g.csv")]) == 130
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == (
        "gemmlab: interrupted: 1 of 3 notebooks are graded; the same command goes on from "
        f"{tmp_path / 'g.kept'}"
    )
    assert not (tmp_path / "g.csv").exists()


def test_a_class_without_an_exercise_is_an_error(tmp_path, graded, capsys):
    write(tmp_path / "none", "eve", b"broken")
    assert cli.main(["grade", str(tmp_path / "none")]) == 1
    assert "no notebook has an exercise; --only names them. no notebook" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            ["--only", "99"],
            "'99' names no exercise; use an exercise, such as 01.1, or a chapter, 00",
        ),
        (["--rubric", "none.toml"], "none.toml"),
        (["--part", "1/2"], "say --csv, too"),
        (["--seed-file", "none.txt"], "none.txt"),
        (["--seed-file", "/dev/null"], "--seed-file /dev/null has no single line of text"),
    ],
)
def test_what_cannot_be_done_is_said_before_anything_runs(graded, capsys, options, words):
    assert cli.main(["grade", str(graded), *options]) == 1
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("part", ["", "3", "0/2", "3/2", "1/2/3", "a/b"])
def test_a_part_that_there_is_not_is_quoted(graded, capsys, part):
    with pytest.raises(SystemExit):
        cli.main(["grade", str(graded), "--part", part])
    assert f"{part!r} is no part, such as 1/20 to 20/20" in capsys.readouterr().err


def test_jobs_share_out_the_notebooks_and_write_no_table(graded, tmp_path, capsys, monkeypatch):
    asked = [path.read_bytes() for path in sorted(graded.iterdir())]
    seen = []
    judge = Grader.one
    monkeypatch.setattr(Grader, "one", lambda *a: seen.append(a[1]) or judge(*a))
    for number, own in ((1, [asked[0], asked[2]]), (2, [asked[1]]), (4, [])):
        seen.clear()
        told = ["grade", str(graded), "--csv", str(tmp_path / "g.csv")]
        assert cli.main([*told, "--part", f"{number}/{max(2, number)}", "--workers", "1"]) == 0
        assert seen == own
        out, err = capsys.readouterr()
        assert out == ""
        assert err.splitlines()[-1].startswith(f"Kept in {tmp_path / 'g.kept'}; the same command")
    assert not (tmp_path / "g.csv").exists()


def test_the_seed_may_stand_in_a_file(graded, tmp_path, capsys, monkeypatch):
    (tmp_path / "seed").write_text("autumn, group B\r\n", "utf-8")
    seeds = []
    monkeypatch.setattr(Grader, "one", lambda self, content: seeds.append(self.seed) or Found())
    with pytest.raises(SystemExit):
        cli.main(["grade", str(graded), "--seed", "x", "--seed-file", str(tmp_path / "seed")])
    cli.main(["grade", str(graded), "--seed-file", str(tmp_path / "seed")])
    assert seeds == ["autumn, group B"] * 3


def test_it_says_where_it_cannot_grade(graded, capsys, monkeypatch):
    monkeypatch.setattr(command, "copies", lambda: False)
    assert cli.main(["grade", str(graded)]) == 1
    assert "WSL" in capsys.readouterr().err


def test_a_class_is_graded_from_python_too(graded):
    rows = grading.grade([graded], only=["01.2"])
    assert [(row.student, row.exercise, row.points) for row in rows] == [
        ("anna", "01.2", 1), ("ben", "01.2", 1), ("cleo", "01.2", 1),
    ]  # fmt: skip


def test_ended_processes_are_not_waited_for(monkeypatch):
    """What is running when grading stops is ended, and what waits does not begin."""
    began = []

    class Slow(Grader):
        def one(self, content):
            began.append(content)
            self.stopped.wait(30)
            return Found()

    several = Slow("seed").every([bytes, bytes, bytes], 1)
    monkeypatch.setattr(processes, "as_completed", interrupted)
    with pytest.raises(KeyboardInterrupt):
        next(several)
    assert len(began) <= 1


def interrupted(waiting):
    raise KeyboardInterrupt

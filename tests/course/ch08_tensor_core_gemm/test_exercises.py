"""The exercises of chapter 08, their answers and their verdicts."""

from tests.course.kill_matrix import KillMatrix


class TestChapter08(KillMatrix):
    chapter = "08"

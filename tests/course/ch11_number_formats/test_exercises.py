"""The exercises of chapter 11, their answers and their verdicts."""

from tests.course.kill_matrix import KillMatrix


class TestChapter11(KillMatrix):
    chapter = "11"

"""The exercises of chapter 12, their answers and their verdicts."""

from tests.course.kill_matrix import KillMatrix


class TestChapter12(KillMatrix):
    chapter = "12"

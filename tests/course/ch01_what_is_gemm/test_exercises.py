"""The exercises of chapter 01, their answers and their verdicts."""

from tests.course.kill_matrix import KillMatrix


class TestChapter01(KillMatrix):
    chapter = "01"

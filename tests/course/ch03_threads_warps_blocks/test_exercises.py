"""The exercises of chapter 03, their answers and their verdicts."""

from tests.course.kill_matrix import KillMatrix


class TestChapter03(KillMatrix):
    chapter = "03"

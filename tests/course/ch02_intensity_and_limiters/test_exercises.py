"""The exercises of chapter 02, their answers and their verdicts."""

from tests.course.kill_matrix import KillMatrix


class TestChapter02(KillMatrix):
    chapter = "02"

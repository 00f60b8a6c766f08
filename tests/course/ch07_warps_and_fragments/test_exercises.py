"""The exercises of chapter 07, their answers and their verdicts."""

from tests.course.kill_matrix import KillMatrix


class TestChapter07(KillMatrix):
    chapter = "07"

"""The exercises of chapter 03, their answers and their verdicts."""

from tests.exercises.kill_matrix import KillMatrix


class TestChapter03(KillMatrix):
    chapter = "03"

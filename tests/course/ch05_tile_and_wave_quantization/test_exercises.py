"""The exercises of chapter 05, their answers and their verdicts."""

from tests.course.kill_matrix import KernelMatrix


class TestChapter05(KernelMatrix):
    chapter = "05"

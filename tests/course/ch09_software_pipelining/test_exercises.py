"""The exercises of chapter 09, their answers and their verdicts."""

from tests.course.kill_matrix import KernelMatrix


class TestChapter09(KernelMatrix):
    chapter = "09"

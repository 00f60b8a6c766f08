"""The exercises of chapter 06, their answers and their verdicts."""

from tests.course.kill_matrix import KernelMatrix


class TestChapter06(KernelMatrix):
    chapter = "06"

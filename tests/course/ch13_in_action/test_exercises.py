"""The exercises of chapter 13, their answers and their verdicts."""

from tests.course.kill_matrix import KernelMatrix


class TestChapter13(KernelMatrix):
    chapter = "13"

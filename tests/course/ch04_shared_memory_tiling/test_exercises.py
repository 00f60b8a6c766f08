"""The exercises of chapter 04, their answers and their verdicts."""

from tests.course.kill_matrix import KernelMatrix


class TestChapter04(KernelMatrix):
    chapter = "04"

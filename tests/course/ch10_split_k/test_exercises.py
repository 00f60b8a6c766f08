"""The exercises of chapter 10, their answers and their verdicts."""

from tests.course.kill_matrix import KernelMatrix


class TestChapter10(KernelMatrix):
    chapter = "10"

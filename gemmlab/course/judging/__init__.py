"""Judging answers: each runs apart, on copies, beside a reference, and gets a diagnosis."""

from gemmlab.course.judging.exercise import Task
from gemmlab.course.judging.verdict import DRAWN_ANEW, FAILING, Diagnosis, Finding

__all__ = ["DRAWN_ANEW", "FAILING", "Diagnosis", "Finding", "Task"]

"""What a teacher needs beside the grades: ``gemmlab class`` on a terminal.

    chapter     a chapter as a teacher sees it: sections and exercises, with their minutes
    syllabus    what fits into 2, 4 or 8 hours or into a term, and what to skip
    classroom   a class's folder, and what is in its files
    answers     each exercise's answer, and what to say to its mistakes
    questions   exams: sizes of questions are drawn, and the library computes the answers
    command     the verb

What a sheet says of an exercise comes from its `Task`, what it says of a machine from the models,
and minutes from the notebooks: nothing is written here a second time.
"""

from collections.abc import Sequence


def verb(arguments: Sequence[str]) -> int:
    """Do what ``gemmlab class`` was asked for; the exit status."""
    from gemmlab.course.teaching.command import main

    return main(arguments)

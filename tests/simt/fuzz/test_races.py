"""The simulator finds a race in random accesses if, and only if, vector clocks do."""

from tests.simt.fuzz.races import differences, programs, races

COUNT = 60  # more, on the command line: python -m tests.simt.fuzz.races 5000


def test_random_accesses_are_judged_as_vector_clocks_judge_them():
    assert differences(COUNT, seed=0) == ([], [])


def test_the_programs_are_of_both_kinds():
    for shared in (False, True):
        raced = sum(races(program, shared) for program in programs(COUNT, seed=0))
        assert COUNT / 4 < raced < 0.9 * COUNT

"""The table of rungs by both compilers is the record's, and says what the page claims of it."""

from benchmarks.compilers import table
from benchmarks.page_tables import filled
from gemmlab import kernels
from gemmlab.here.compilers import COMPILERS


def test_the_page_has_the_table_as_it_is_recorded():
    text = table.PAGE.read_text("utf-8")
    assert filled(text, table.TABLES) == text


def test_every_rung_was_timed_by_both_and_gave_the_same_bits():
    rungs = table.recorded().tables["rungs"]
    assert [one.rung for one in rungs] == [kernel.name for kernel in kernels.GPU]
    for one in rungs:
        assert one.same
        assert set(one.seconds) == set(one.registers) == set(one.local_bytes) == set(COMPILERS)
        assert all(seconds > 0 for seconds in one.seconds.values())


def test_whatever_differs_by_more_than_three_percent_is_spoken_of():
    text = table.PAGE.read_text("utf-8").rpartition("<!-- end -->")[2]
    for one in table.recorded().tables["rungs"]:
        if abs(one.ratio - 1) > 0.03:
            assert f"*{one.rung}*" in text, one

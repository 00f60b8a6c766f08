"""The page's tables are the records', which say what it claims, and are what compiles today."""

from dataclasses import replace

import pytest

from benchmarks.compilers import RUNGS, differences, probes, table
from benchmarks.page_tables import filled
from gemmlab.here.compilers import COMPILERS, MLIR, NUMBA

RECORDED = {(one.topic, one.what): one for one in differences.recorded().tables["differences"]}


def test_the_page_has_the_table_as_it_is_recorded():
    text = table.PAGE.read_text("utf-8")
    assert filled(text, table.TABLES) == text


def test_every_rung_was_timed_by_both_and_gave_the_same_bits():
    rungs = table.recorded().tables["rungs"]
    assert [one.rung for one in rungs] == [kernel.name for kernel in RUNGS]
    for one in rungs:
        assert one.same
        assert set(one.seconds) == set(one.registers) == set(one.local_bytes) == set(COMPILERS)
        assert all(seconds > 0 for times in (one.seconds, one.compile_seconds)
                   for seconds in times.values())  # fmt: skip


def test_whatever_differs_by_more_than_three_percent_is_spoken_of():
    text = table.PAGE.read_text("utf-8").partition("Where the difference exceeds")[2]
    text = text.partition("\n## ")[0]
    for one in table.recorded().tables["rungs"]:
        if abs(one.ratio - 1) > 0.03:
            assert f"*{one.rung}*" in text, one


def asked(of):
    """Tests of probes by the compilers that are installed."""
    found = [c for c, installed in COMPILERS.items() if installed()]
    pairs = [(probe, c) for probe in of for c in found]
    return pytest.mark.parametrize(
        ("probe", "compiler"), pairs, ids=[f"{p.kernel.__name__}-{c}" for p, c in pairs]
    )


@pytest.mark.ptxas
@pytest.mark.measuring
@asked(probes.PROBES)
def test_a_small_kernel_comes_out_as_the_page_says(probe, compiler):
    one = RECORDED[probe.topic, probe.what]
    assert differences.outcome(probe, compiler) == one.outcomes[compiler]
    if compiler == MLIR:
        assert differences.outcome(probe, compiler, mended=True) == one.mended


def test_each_small_kernel_is_in_a_table_and_most_are_right_by_numba_cuda():
    compiled = [(probe.topic, probe.what) for probe in probes.PROBES]
    rest = [
        (differences.HOST, one.what) for one in RECORDED.values() if one.topic == differences.HOST
    ]
    assert list(RECORDED) == [*compiled, *rest]
    for (topic, what), one in RECORDED.items():
        if topic in (probes.SILENT, probes.LACKS):
            assert one.outcomes[NUMBA] == probes.RIGHT, what
            assert one.outcomes[MLIR] != probes.RIGHT, what


@pytest.mark.ptxas
@pytest.mark.measuring
@pytest.mark.parametrize("compiler", [c for c, installed in COMPILERS.items() if installed()])
def test_what_differs_outside_of_kernels(compiler):
    for one in differences.host_differences((compiler,)):
        if "alone" not in one.what:  # which takes both to say
            assert one.outcomes[compiler] == RECORDED[one.topic, one.what].outcomes[compiler]


@pytest.mark.ptxas
@pytest.mark.measuring
def test_a_wrong_result_is_told_with_the_right_one():
    probe = probes.PROBES[0]
    wrong = {name: result + 1 for name, result in probe.results.items()}
    compiler = next((c for c, installed in COMPILERS.items() if installed()), NUMBA)
    said = differences.outcome(replace(probe, results=wrong), compiler)
    assert ", not " in said
    assert differences.outcome(replace(probe, x=probe.x[:4]), compiler) == "outside of the arrays"


def test_times_to_compile_grow_with_functions_that_call_each_other():
    chains = differences.recorded().tables["chains"]
    assert [one.functions for one in chains] == list(differences.CHAINS)
    for compiler in COMPILERS:
        times = [one.seconds[compiler] for one in chains]
        assert times == sorted(times)
    assert chains[-1].seconds[MLIR] > chains[-1].seconds[NUMBA]

"""The held-out set: drawn by its rule, of all kinds, and nowhere among what is recorded."""

import pytest

from benchmarks import held_out
from benchmarks.guide_figures import FIGURES, FORMATS
from benchmarks.held_out import KERNELS, SETS, problems
from benchmarks.record import main
from gemmlab import kernels, records
from gemmlab.compiled.forecast.library import tiles
from gemmlab.device import device
from gemmlab.measure.recording import SIZES, parse_sizes
from gemmlab.problem import LAYOUTS

H200 = device("h200")
pytestmark = pytest.mark.measuring


def sizes(problem):
    return problem.m, problem.n, problem.k


DRAWN = [problem for each in SETS.values() for problem in problems(*each)]


@pytest.mark.parametrize(("seed", "rule"), SETS.values(), ids=SETS)
def test_every_size_is_within_the_limits_of_its_rule(seed, rule):
    drawn = iter(problems(seed, rule))
    for count, limits, multiple in rule:
        for _ in range(count):
            for size, (low, high) in zip(sizes(next(drawn)), limits, strict=True):
                assert low <= size <= high
                assert size % multiple == 0
    assert not list(drawn)


def test_it_is_the_same_each_time_and_another_for_another_seed():
    assert problems(*SETS["held_out"]) == problems(*SETS["held_out"])
    assert len({sizes(p) for p in DRAWN}) == len(DRAWN)
    assert [len(problems(*each)) for each in SETS.values()] == [10, 10, 5]


@pytest.mark.parametrize("which", SETS)
def test_it_has_all_layouts_and_mostly_large_products(which):
    found = problems(*SETS[which])
    assert {p.layout for p in found} == set(LAYOUTS)
    large = [p for p in found if held_out.size(p) >= 1000]
    assert len(found) / 2 < len(large) < len(found)
    assert any(size % 4 for p in large for size in sizes(p))


def test_no_size_is_one_that_was_looked_at():
    asked = {sizes(p) for p in parse_sizes(SIZES)}
    asked |= {sizes(m.problem) for m in records.load("h200")}
    for rows in tiles("h200").values():  # of cuBLAS
        asked |= {(row.m, row.n, k) for row in rows for k in row.k}
    asked |= {s for f in FIGURES.values() for s in f.sizes(H200, (256, 128))}
    assert not asked & {sizes(p) for p in DRAWN}


def test_each_product_has_every_tiling_of_every_rung():
    points = held_out.plan(KERNELS, H200)
    keys = [p.key for p in points]
    assert len(keys) == len(set(keys))
    assert {p.kernel.name for p in points if p.skip} <= {"naive"}  # takes long for the largest
    for kernel in kernels.LADDER:
        own = [p for p in points if p.kernel is kernel]
        expected = {kernel.default, *kernel.tilings}
        for problem in DRAWN:
            of_size = [p for p in own if sizes(p.problem) == sizes(problem)]
            assert {p.tiling for p in of_size} == expected
            assert len(of_size) == len(expected)
            assert {p.problem.layout for p in of_size} <= {problem.layout, "nn"}
    library = {p.problem for p in points if p.kernel is kernels.cublas}
    assert {p.dtype for p in library} == set(FORMATS)
    assert len(library) == len(FORMATS) * len(DRAWN)
    first = held_out.plan(KERNELS, H200, sets=[SETS["held_out"]])
    assert {sizes(p.problem) for p in first} == {sizes(p) for p in problems(*SETS["held_out"])}


def test_what_takes_too_long_is_left_out():
    points = held_out.plan([kernels.naive], H200, budget=1e-6)
    assert all("predicted" in p.skip for p in points)


def test_a_campaign_is_listed_and_kept_apart(capsys):
    assert main(["--held-out", "--dry-run", "--kernels", "pipelined"]) == 0
    text = capsys.readouterr().out
    assert text.count("pipelined ") == len(DRAWN) * len(kernels.pipelined.tilings)
    assert str(held_out.ROOT / "h200" / held_out.FOLDER) in text


@pytest.mark.parametrize("name", records.devices())
def test_it_is_not_among_the_records_that_are_loaded(name):
    assert not {sizes(p) for p in DRAWN} & {sizes(m.problem) for m in records.load(name)}

"""The held-out set of the other families: drawn by its rule, and nowhere among what is recorded."""

from collections import Counter
from functools import cache

import pytest

from benchmarks import held_out_families
from benchmarks.held_out import ALIGNED, LARGE
from benchmarks.held_out_families import DIVIDED, FAMILIES, LONG, NARROW, SETS, plan, products
from benchmarks.record import main
from gemmlab import kernels, records
from gemmlab.device import device
from gemmlab.measure.recording import SIZES, parse_sizes
from gemmlab.problem import LAYOUTS

H200 = device("h200")
pytestmark = pytest.mark.measuring


@cache
def points():
    """All of them: hundreds of tilings are chosen for it, so nobody who only collects waits."""
    return plan(H200)


def sizes(problem):
    return problem.m, problem.n, problem.k


def sets_of(*families):
    """(set, family) for each set that has one of these families."""
    return [(which, f) for which, one in SETS.items() for f in one.families if f in families]


@pytest.mark.parametrize(("which", "family"), sets_of(*DIVIDED))
def test_k_is_long_and_c_small_where_k_is_divided(which, family):
    found = list(products(which, family))
    assert len(found) == 8
    for problem in found:
        assert all(NARROW[0] <= side <= NARROW[1] for side in (problem.m, problem.n))
        assert LONG[0] <= problem.k <= LONG[1]
    formats = {"k divided": {"float32": 8}}.get(family, {"float16": 4, "bfloat16": 4})
    assert Counter(p.dtype for p in found) == formats
    assert {p.out_dtype for p in found} == {"float32"}
    assert {p.layout for p in found} == set(LAYOUTS)


def test_formats_and_layouts_take_turns_on_tensor_cores():
    found = list(products("held_out_families", "mma.sync"))
    assert Counter(p.dtype for p in found) == {"float16": 4, "bfloat16": 4}
    assert {p.layout for p in found} == set(LAYOUTS)
    assert {p.out_dtype for p in found} == {"float32"}
    assert any(size % 8 for p in found for size in sizes(p))
    assert sum(min(sizes(p)) >= LARGE[0] for p in found) == 5


def test_the_tma_gets_what_it_can_copy():
    found = list(products("held_out_families", "wgmma and TMA"))
    every = products("held_out_families", "mma.sync")
    same = [sizes(p) for p in every if all(s % ALIGNED == 0 for s in sizes(p))]
    assert [sizes(p) for p in found] == same
    for which, family in sets_of("wgmma and TMA", "mma.sync and TMA", "wgmma"):
        found = list(products(which, family))
        assert len(found) == 7
        assert all(s % ALIGNED == 0 for p in found for s in sizes(p))
        assert {p.dtype for p in found} == {"float16"}


def test_every_kernel_of_the_course_is_held_out_somewhere():
    families = {kernel for members in FAMILIES.values() for kernel in members}
    assert families | set(kernels.LADDER) == set(kernels.GPU)


@pytest.mark.parametrize(("which", "family"), sets_of("TCEC"))
def test_tcec_computes_products_in_float32_of_all_layouts(which, family):
    found = list(products(which, family))
    assert {p.dtype for p in found} == {p.out_dtype for p in found} == {"float32"}
    assert {p.layout for p in found} == set(LAYOUTS)


def test_sets_of_a_family_have_no_product_in_common():
    for family in FAMILIES:
        drawn = [sizes(p) for which, _ in sets_of(family) for p in products(which, family)]
        assert len(drawn) == len(set(drawn))


def test_each_product_is_computed_by_every_kernel_of_its_family():
    assert not [p for p in points() if p.skip]
    asked = Counter(p.kernel.name for p in points())
    expected = Counter()
    for which, family in sets_of(*FAMILIES):
        count = len(list(products(which, family)))
        expected.update({kernel.name: count for kernel in FAMILIES[family]})
    assert asked == expected
    divided = *kernels.SPLIT_K, *kernels.TENSOR_CORE_SPLIT_K
    split = [p for p in points() if p.kernel in divided]
    assert all(p.tiling == p.kernel.choose(None, p.problem, H200) for p in split)


def test_no_size_is_one_that_was_looked_at():
    asked = {sizes(p) for p in parse_sizes(SIZES)} | {
        sizes(m.problem) for m in records.load("h200")
    }
    assert not asked & {sizes(p.problem) for p in points()}


@pytest.mark.parametrize("sets", [[], ["held_out_hopper"]], ids=["all", "one"])
def test_the_campaign_and_a_set_alone_can_be_listed(sets, capsys, monkeypatch):
    """All tilings are chosen anew for each listing, which takes long: once is enough here."""
    asked = []

    def planned(device, chosen):
        asked.extend(chosen)
        return points()[:3]

    monkeypatch.setattr(held_out_families, "plan", planned)
    assert main(["--held-out-families", *sets, "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert asked == (sets or list(SETS))
    for line, point in zip(said.splitlines()[1:-1], points()[:3], strict=True):
        assert line.startswith(str(point))
    assert held_out_families.FOLDER in said


def test_of_no_set_there_is_nothing_to_measure():
    assert plan(H200, []) == []


def test_a_set_that_is_none_is_refused(capsys):
    which = "held_out_hopper"
    with pytest.raises(SystemExit):
        main(["--held-out-families", "held_out_hoper", "--dry-run"])
    assert which in capsys.readouterr().err


def test_a_family_that_is_none():
    with pytest.raises(ValueError, match="has no family 'mma'; use one of k divided, mma.sync"):
        next(products("held_out_families", "mma"))

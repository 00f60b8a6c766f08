"""The library by its recorded tiles: what they took, products of several, and what is not known."""

from dataclasses import replace

import pytest

from benchmarks.forecast import rows_anywhere
from benchmarks.forecast.library import SIZES, Ran, chosen, one_by_one, products, way
from benchmarks.guide_figures import FORMATS
from gemmlab import Gemm, device, records
from gemmlab.compiled.forecast.library import (
    FILE,
    PRODUCTS,
    Computed,
    TileTimes,
    Ways,
    as_computed,
    computed,
    in_tile,
    kind,
    most_alike,
    predict_library,
    tiles,
    write,
)
from gemmlab.measure import store
from gemmlab.measure.records import RecordError
from gemmlab.problem import LAYOUTS
from tests.support.paths import ROOT

H200 = device("h200")
LAUNCH = H200.launch_latency
ROW = TileTimes(
    "float16", "nn", 16, "nvjet", (128, 256), True, 128 * 132, 256, (1000, 3000), (20e-6, 40e-6)
)


def test_the_kind_is_that_of_the_rows_that_are_aligned_worst():
    for more, aligned in enumerate((16, 2, 4, 2, 4, 2, 4, 2, 16)):
        assert kind(Gemm(4096, 4096, 4096 + more, dtype="float16")).aligned == aligned
    assert kind(Gemm(4097, 4096, 4096, dtype="float16")).aligned == 16  # m is no row's length
    assert kind(Gemm(4097, 4096, 4096, dtype="float16", layout="tn")).aligned == 2
    assert kind(Gemm(4096, 4097, 4096)) == ("float32", "nn", 4)


def test_two_products_give_a_step_and_a_beginning():
    assert ROW.step(132) == pytest.approx(1e-8)
    assert ROW.begin(132, 3e-6) == pytest.approx(7e-6)
    twice = replace(ROW, m=2 * ROW.m)
    assert twice.waves(132, twice.m, twice.n) == 2
    assert twice.step(132) == pytest.approx(0.5e-8)
    assert twice.begin(132, 3e-6) == pytest.approx(7e-6)
    assert replace(twice, stays=False).begin(132, 3e-6) == pytest.approx(3.5e-6)


@pytest.mark.parametrize(("stays", "begins"), [(True, 1), (False, 2)])
def test_tiles_come_in_waves_and_begin_anew_unless_blocks_stay(stays, begins):
    row = replace(ROW, stays=stays)
    found = in_tile(Gemm(128 * 132, 512, 2000, dtype="float16"), H200, row)
    assert found.times["math"] == pytest.approx(2 * 2000 * 1e-8)
    assert found.launch == pytest.approx(LAUNCH + begins * (10e-6 - LAUNCH))
    assert found.seconds == pytest.approx(found.launch + max(found.times.values()))


def test_parts_of_k_are_tiles_of_their_own_and_are_added_up():
    problem = Gemm(128, 256, 132_000, dtype="float16")
    whole, parts = (in_tile(problem, H200, ROW, split) for split in (1, 132))
    assert whole.times["math"] == pytest.approx(132 * parts.times["math"])
    assert whole.reduction == 0 < in_tile(problem, H200, ROW, 2).reduction < parts.reduction
    assert parts.seconds < whole.seconds
    assert parts.seconds == parts.launch + max(parts.times.values()) + parts.reduction


def test_memory_takes_as_long_in_any_tile():
    problem = Gemm(16384, 64, 16384, dtype="float16")
    found = predict_library(problem, H200)
    assert found.limiter == "dram"
    assert found.times["dram"] == problem.dram_bytes / H200.dram_copy_bandwidth


@pytest.mark.parametrize("dtype", FORMATS)
def test_the_fastest_tile_is_taken(dtype):
    problem = Gemm(1000, 2000, 3000, dtype=dtype)
    found = predict_library(problem, H200)
    every = tiles("h200")[kind(problem)]
    assert found.seconds <= min(in_tile(problem, H200, row).seconds for row in every)
    assert found.row in every


# ---------------------------------------------------------------------------------- what is stored


def test_each_kind_of_product_has_tiles():
    known = tiles("h200")
    aligned = {"float16": (16, 4, 2), "tf32": (16, 4), "float32": (16, 4)}
    assert set(known) == {
        (dtype, layout, a) for dtype in FORMATS for layout in LAYOUTS for a in aligned[dtype]
    }
    for of, rows in known.items():
        assert len({row.tile for row in rows}) == len(rows)
        for row in rows:
            assert {size - size % 64 for size in (row.m, row.n)} <= set(SIZES)
            asked = Gemm(row.m, row.n, row.k[0], dtype=row.dtype, layout=row.layout)
            assert kind(asked) == of


def test_no_tile_is_faster_than_the_peak():
    for of, rows in tiles("h200").items():
        for row in rows:
            rate = 2 * row.tile[0] * row.tile[1] * H200.sms / row.step(H200.sms)
            assert 0 < rate < 1.1 * H200.peak_of(of.dtype), row  # the clock is above the peak's
            assert row.begin(H200.sms, LAUNCH) < 30e-6


def test_what_is_not_recorded_is_said(tmp_path):
    with pytest.raises(LookupError, match=r"no tile .*'float64'.* formats are float16, flo"):
        predict_library(Gemm(64, 64, 64, dtype="float64"), "h200")
    with pytest.raises(
        LookupError, match=r"not recorded on h200; `python -m benchmarks.forecast.lib"
    ):
        predict_library(Gemm(64, 64, 64), "h200", root=tmp_path)


def test_what_is_written_is_read_and_an_edited_file_is_refused(tmp_path):
    path = tmp_path / "h200" / FILE
    write(path, {"device": "h200"}, [ROW])
    assert tiles("h200", tmp_path) == {ROW.kind: [ROW]}
    path.write_text(path.read_text("utf-8").replace("4e-05", "3e-05"), "utf-8")
    with pytest.raises(RecordError, match="edited"):
        tiles("h200", tmp_path)


def test_large_products_in_records_are_within_a_tenth():
    """Their rows are aligned; none of these times is a fact."""
    for m in records.load("h200", "cublas"):
        p = m.problem
        if p.dtype == "float32" and min(p.m, p.n, p.k) >= 2048 and p.m % 64 == p.k % 64 == 0:
            assert predict_library(p, "h200").seconds == pytest.approx(m.seconds, rel=0.1), p


# ------------------------------------------------------------------------------- what is to be kept


def made(m, k, seconds, name="nvjet_sm90_hsh_256x128_64x4_x", blocks=132, parts=1):
    """A product that one kernel computed."""
    return Gemm(m, 256, k, dtype="float16"), seconds, [Ran(name, (blocks, 1, parts))]


@pytest.mark.parametrize(
    ("products", "kept"),
    [
        ([(16896, 1024, 20e-6), (16896, 4096, 80e-6)], (16896, True)),
        ([(16896, 1024, 20e-6), (16896, 2048, 60e-6)], None),  # k is not far enough apart
        ([(16896, 1024, 20e-6), (16896, 4096, 22e-6)], None),  # nor are the times
        ([(16896, 1024, 20e-6), (16896, 8192, 90e-6)], None),  # memory is what takes so long
        ([(33792, 1024, 30e-6), (33792, 4096, 130e-6)], (33792, True)),
    ],
)
def test_two_products_are_kept_that_say_something(products, kept):
    several = [(67584, 1024, 1e-4)]  # 528 tiles of 132 blocks
    cases = [made(*case) for case in (*products, *several)]
    rows = chosen({p: s for p, s, _ in cases}, {p: r for p, _, r in cases}, H200)
    assert [(row.m, row.stays) for row in rows] == ([kept] if kept else [])


def test_a_product_in_parts_of_k_or_by_two_kernels_is_left_out():
    first, second = made(16896, 1024, 20e-6, parts=2), made(16896, 4096, 60e-6)
    double = (second[0], second[1], second[2] * 2)
    for pair in ((first, second), (made(16896, 1024, 20e-6), double)):
        assert chosen({p: s for p, s, _ in pair}, {p: r for p, _, r in pair}, H200) == []


def test_no_product_that_is_timed_is_of_a_held_out_set():
    found = list(products())
    assert len(found) == len(set(found))
    assert {size - size % 64 for p in found for size in (p.m, p.n)} == set(SIZES)


# ------------------------------------------------------------- products recorded one by one

H100 = device("h100_sxm")
SERIAL = [
    Ran(
        "void cutlass::Kernel2<cutlass_75_tensorop_f16_s1688gemm_f16_256x128_nn_align1>(P)",
        (9, 9, 4),
    )
]
ADDED = [*SERIAL, Ran("void cublasLt::splitKreduce_kernel<32, 16, int>(P)", (8, 1, 1))]


def half(m, n, k, layout="nn"):
    return Gemm(m, n, k, dtype="float16", layout=layout)


def test_the_way_of_a_product_is_its_kernel_and_who_adds_parts_up():
    name = "cutlass_75_tensorop_f16_s1688gemm_f16_256x128_nn_align1"
    assert way(SERIAL) == Ways(name, (128, 256), 4, added=False)
    assert way(ADDED) == Ways(name, (128, 256), 4, added=True)


def test_rows_that_begin_anywhere_are_kept_one_by_one(tmp_path):
    ran = {half(65, 129, 257): SERIAL, half(129, 65, 257): ADDED, half(64, 64, 64): SERIAL}
    seconds = dict.fromkeys(ran, 2e-5)
    ways, rows = one_by_one(seconds, ran)
    assert len(ways) == 2
    (row,) = rows  # of one kind and one k; the rows of 64×64 begin at multiples of 16 bytes
    assert (row.aligned, row.k, row.m, row.n, row.ns) == (
        2,
        257,
        (65, 129),
        (129, 65),
        (20_000,) * 2,
    )
    store.write(tmp_path / "x" / PRODUCTS, {"device": "x"}, {"ways": ways, "rows": rows})
    found = computed("x", tmp_path)[kind(half(65, 129, 257))]
    assert [(one.problem, one.way) for one in found] == [(p, way(ran[p])) for p in list(ran)[:2]]
    assert [one.seconds for one in found] == pytest.approx([2e-5] * 2)


def test_a_recorded_product_is_predicted_as_it_was_timed_or_in_less():
    """It is its own nearest one."""
    for one in computed("h100_sxm")[kind(half(65, 65, 257))][::37]:
        assert most_alike(one.problem, [*computed("h100_sxm")[kind(one.problem)]])[0] == one
        assert as_computed(one.problem, H100, one).seconds == pytest.approx(one.seconds, rel=1e-6)
        assert predict_library(one.problem, "h100_sxm").seconds <= one.seconds * (1 + 1e-6)


def test_a_tile_of_which_c_has_a_part_counts_as_that_part():
    one = Computed(half(2049, 2049, 1025), Ways("x", (128, 256), 2, added=False), 1e-4)
    assert one.work(132, half(2048, 2048, 1024)) == pytest.approx(128 * 2 / 132 * (512 + 128))
    assert one.work(132, half(2048, 2049, 1024)) < 1.001 * one.work(132, half(2048, 2048, 1024))
    assert one.work(132, half(1, 1, 1024)) == 512 + 128  # an SM has one at least


def test_parts_that_a_launch_adds_up_take_that_besides():
    apart, added = (
        Computed(half(513, 513, 4097), Ways("x", (128, 128), 4, added=a), 1e-4)
        for a in (False, True)
    )
    assert apart.reduction(H100, apart.problem) == 0 < added.reduction(H100, added.problem)
    longer = half(513, 513, 8193)
    whole, parts = (as_computed(longer, H100, one) for one in (apart, added))
    assert parts.reduction == added.reduction(H100, longer)
    assert parts.times["math"] < whole.times["math"]


def test_decision_041_says_how_far_off_rows_anywhere_were():
    text = " ".join(
        (ROOT / "book/decisions/041-what-blind-sets-showed.md").read_text("utf-8").split()
    )
    found = {
        which: [
            sum(map(abs, rows_anywhere.errors(which, made))) / len(made.rows)
            for made in rows_anywhere.written(which)
        ]
        for which in rows_anywhere.SETS
    }
    (first, since), (second,) = found.values()
    assert f"28 products, predicted first, were {first:.1%} off" in text
    assert f"which gives {since:.1%} on that set, and {second:.1%} on 27 others" in text
    counts = [len(rows_anywhere.cases(which)) for which in rows_anywhere.SETS]
    assert counts == [28, 27]
    for which in rows_anywhere.SETS:
        when = rows_anywhere.timings(which).provenance["date"]
        assert rows_anywhere.written(which)[0].provenance["date"] < when


def test_predictions_of_rows_anywhere_are_what_the_code_says():
    for which in rows_anywhere.SETS:
        kept = rows_anywhere.written(which)[-1].rows
        for said, row in zip(rows_anywhere.predicted(which, "h100_sxm"), kept, strict=True):
            assert said["seconds"] == pytest.approx(row["seconds"], rel=1e-5)

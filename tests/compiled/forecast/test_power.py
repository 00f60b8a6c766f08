"""The limit of power: facts from the record, and the clocks that they leave."""

import numpy as np
import pytest

from benchmarks.forecast.written import Written
from benchmarks.power import page
from benchmarks.power.blind import CASES, SETS
from gemmlab import Gemm, kernels
from gemmlab.compiled.forecast.power import FILE, Load, Loop, Pulses, of_warp, power
from gemmlab.compiled.forecast.rungs import missing, predict_rung
from gemmlab.measure import store
from tests.support.listings import listing
from tests.support.paths import ROOT

H100 = power("h100_sxm")
FULL = 1.83e9


def recorded(file):
    """What a record has of loops, by their names."""
    found = store.read(store.ROOT / "h100_sxm" / file, {"rows": Loop, "pulses": Pulses})
    return {row.name: row for row in found.tables["rows"]}


NAMED, BESIDE = recorded(FILE), recorded("power_beside.json")
DRAM = "both_dram_4", "both_dram_8"


def watts(name, energies=H100.energies):
    """What a loop would take of dynamic power if it had the clock of Tensor Cores."""
    row = NAMED[name]
    return energies[name.rpartition("_")[0]] * row.rate / row.clock * FULL / 1e6


def load(name):
    return Load(1.0, watts(name), watts(name, H100.at(FULL)))


def beside(name):
    """What a loop that multiplies and reads would take at that clock.

    A product's energy is what few SMs need that do not read; bytes have those of the first record.
    """
    row, own = BESIDE[f"{name}_132"], BESIDE["both_0_33"]
    each = (own.power - BESIDE["rest_132"].power) / own.rate
    each *= (FULL / 1e6 / own.clock) ** H100.voltage
    faster = FULL / 1e6 / row.clock
    memory = H100.energies["dram"] * row.read * faster if "dram" in name else 0.0
    chip = (each * row.rate + H100.at(FULL)["l2"] * row.read) * faster
    return row, Load(1.0, chip + memory, chip, memory)


def test_an_h200_has_the_chip_of_an_h100_and_others_are_not_known():
    assert power("h200") == H100
    assert power("t4") is None


@pytest.mark.parametrize("name", ["wgmma_132", "wgmma_99", "hmma_132", "wgmma_tf32_132"])
def test_loops_have_the_clocks_that_their_power_leaves(name):
    """At once, in launches of some milliseconds, and after half a second at the limit."""
    row = NAMED[name]
    assert H100.clock(FULL, watts(name)) == pytest.approx(1e6 * row.course[4], rel=0.05)
    held = H100.sustained(FULL, load(name), 1.0, 0.0)
    assert held == pytest.approx(1e6 * row.clock, rel=0.05)


@pytest.mark.parametrize("name", [*(f"both_{n}" for n in (0, 4, 8, 12, 16)), *DRAM])
def test_loops_that_multiply_and_read_judge_the_mean_limit(name):
    """They were recorded afterwards, on another board; a third of the power may be memory's."""
    row, its = beside(name)
    held = H100.sustained(FULL, its, 1.0, 0.0)
    assert held == pytest.approx(1e6 * row.clock, rel=0.04 if name in DRAM else 0.07)


def test_few_sms_and_zeros_are_not_held_back():
    assert H100.clock(FULL, watts("wgmma_66")) == FULL
    assert NAMED["wgmma_132_zeros"].power < 0.45 * NAMED["wgmma_132"].power


def test_pauses_between_launches_leave_them_more():
    taken = Load(1.0, 1500.0, 1400.0)
    in_a_row = H100.sustained(FULL, taken, 2e-3, 0.0)
    timed = H100.sustained(FULL, taken, 2e-3, H100.pause[0])
    assert in_a_row < timed < H100.clock(FULL, taken.watts)
    assert H100.sustained(FULL, taken, 1e-4, H100.pause[0]) == H100.clock(FULL, taken.watts)
    assert H100.sustained(FULL, taken, 1.0, H100.pause[0]) == pytest.approx(in_a_row, rel=1e-3)


def test_what_memory_takes_does_not_fall_with_the_voltage():
    chip, both = Load(1.0, 1500.0, 1500.0), Load(1.0, 1500.0, 1200.0, 300.0)
    assert H100.sustained(FULL, both, 1.0, 0.0) < H100.sustained(FULL, chip, 1.0, 0.0)
    part = H100.part(both, 600.0)
    assert 1200 * part ** (1 + H100.voltage) + 300 * part == pytest.approx(600)
    assert H100.part(both, 1501.0) == pytest.approx(1.0)


def test_the_clock_dips_where_work_begins():
    """A loop of a tenth of a millisecond loses what the record's first part has lost."""
    row, taken = NAMED["hmma_132"], watts("hmma_132")
    lost = H100.onset(H100.clock(FULL, taken), FULL, taken, 1e-4)
    assert lost / 1e-4 == pytest.approx(1 - row.course[0] / row.course[4], abs=0.02)


@pytest.mark.parametrize(
    ("opcode", "kind", "count"),
    [
        ("HMMA.16816.F32 R0, R4, R8, R0", "hmma", 16 * 8 * 16),
        ("HMMA.1688.F32.TF32 R0, R4, R8, R0", "hmma_tf32", 16 * 8 * 8),
        ("HGMMA.64x128x16.F32 R24, gdesc[UR20], R24, gsb0", "wgmma", 64 * 128 * 16 / 4),
        ("FFMA R0, R1, R2, R3", "fma32", 32),
        ("BRA `(.L_x_1)", "alu", 0),
    ],
)
def test_an_instruction_of_a_warp_takes_the_energy_of_its_products(opcode, kind, count):
    (one,) = listing(f"------ W- R- - S01  {opcode}").instructions
    assert of_warp(one, H100.energies) == pytest.approx(count * H100.energies[kind])


@pytest.mark.slow
def test_a_large_product_is_held_back_and_held_back_more_in_a_row():
    problem = Gemm(8192, 8192, 8192, dtype="float16", out_dtype="float32")
    found = predict_rung(problem, "h100_sxm", kernels.warp_specialised)
    assert 1400 < found.load.watts < 2000
    assert 1.06 * found.seconds < found.sustained < 1.2 * found.seconds


class _Share:
    """A launch of blocks of 16×16, of which eight are on an SM at once."""

    sms, resident = 132, 8

    def __init__(self, problem):
        self.grid = (-(-problem.n // 16), -(-problem.m // 16), 1)


@pytest.mark.parametrize(
    ("sizes", "least", "most"),
    [
        ((4096, 4272, 1328), 0.0, 0.2),  # 12% by ncu: bytes of device memory, less each array once
        ((2800, 3760, 1872), 0.4, 0.6),  # 48%
        ((6400, 3072, 2048), 0.2, 0.35),  # 27%
        ((4800, 2400, 2800), 0.35, 0.5),  # 42%
        ((1770, 1262, 5422), 0.9, 1.0),  # all
        ((7776, 2880, 3728), 1.0, 1.0),
        ((1024, 1024, 1024), 0.0, 0.0),
    ],
)
def test_l2_loses_columns_that_it_cannot_hold_until_they_are_read_again(sizes, least, most):
    """What an H100 lost of B between rounds of blocks of *coalesced*."""
    from types import SimpleNamespace

    from gemmlab import device

    problem = Gemm(*sizes)
    executed = SimpleNamespace(share=_Share(problem), device=device("h100_sxm"))
    assert least <= missing(problem, executed, kernels.coalesced) <= most


def test_the_record_is_of_loops_that_end_at_the_limit_or_below():
    assert all(np.isfinite(row.power) and row.power < 720 for row in NAMED.values())


# ----------------------------------------------------------------------------------- the blind set


def test_the_blind_set_was_predicted_before_it_was_timed():
    first, timed = page.written()[0], page.timings()
    assert first.provenance["date"] < timed.provenance["date"]
    names = [(case.kernel, str(case.problem)) for case in CASES]
    assert [(row["kernel"], row["problem"]) for row in first.rows] == names
    assert [(row["kernel"], row["problem"]) for row in timed.rows] == names


def test_the_decision_says_how_far_off_the_blind_set_was():
    """Its sentences have the means of the records, of launches alone and in a row."""
    found = page.products(page.written()[0])
    held = [one for one in found if one.held]
    far = [one for one in found if one.kernel == "coalesced"]
    alone, in_a_row = page.means(found)
    text = " ".join((ROOT / "book/decisions/038-the-limit-of-power.md").read_text("utf-8").split())
    assert (len(found), len(held), len(far)) == (33, 22, 8)
    assert f"Thirty-three products, launches alone: {alone:.1%} off on average" in text
    assert f"the 22 that the limit of power held back {page.means(held)[0]:.1%}" in text
    assert f"with a C beyond L2 {page.means(far)[0]:.1%}" in text
    assert f"In a row, for longer than a second, {in_a_row:.1%}" in text
    slow = [one for one in held if one.errors[1] > 0]
    assert len(slow) == 3
    assert "of the 22 all but three are too fast there" in text
    sentence = f"{alone:.1%} off on average alone, {in_a_row:.1%} in a row"
    assert sentence in (ROOT / "CHANGELOG.md").read_text("utf-8")


def test_a_second_blind_set_judges_the_mean_limit_and_what_l2_loses():
    first, timed = page.written("power_2")[0], page.timings("power_2")
    assert first.provenance["date"] < timed.provenance["date"]
    names = [(case.kernel, str(case.problem)) for case in SETS["power_2"]]
    assert [(row["kernel"], row["problem"]) for row in first.rows] == names
    found = page.products(first, "power_2")
    held = [one for one in found if one.held]
    far = [one for one in found if one.kernel == "coalesced"]
    (alone, in_a_row), (held_alone, held_in_a_row) = page.means(found), page.means(held)
    path = "book/decisions/049-what-the-mean-and-l2-leave.md"
    text = " ".join((ROOT / path).read_text("utf-8").split())
    assert (len(found), len(held), len(far)) == (14, 9, 5)
    assert f"launches alone: {alone:.1%} off on average; the 9 that" in text
    assert f"held back {held_alone:.1%}, five of" in text
    assert f"beyond L2 {page.means(far)[0]:.1%}." in text
    assert f"In a row {in_a_row:.1%}, of the nine {held_in_a_row:.1%}" in text
    before, since = (page.means(page.products(one)) for one in page.written())
    cells = [f"{before[0]:.1%}; {before[1]:.1%}", f"{since[0]:.1%}; {since[1]:.1%}"]
    assert f"alone; in a row | {' | '.join(cells)} |" in text
    assert all(one.errors[1] < 0 for one in held)


@pytest.mark.parametrize("changed", [{"error": 0.1}, {"error": float("nan")}, {"tiling": "x"}])
def test_other_code_and_a_wrong_c_are_refused(monkeypatch, changed):
    first, timed = page.written()[0], page.timings()
    rows = (timed.rows[0] | changed, *timed.rows[1:])
    monkeypatch.setattr(page, "timings", lambda which: Written(timed.provenance, rows))
    with pytest.raises(ValueError, match="wgmma_pipelined 8192×8192×8192"):
        page.products(first)

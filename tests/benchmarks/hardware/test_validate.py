"""`run.py validate`: pieces that resume, a report, a status, and records."""

import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.hardware import machine, store, validate
from benchmarks.hardware.check import Check, Comparison, UnavailableError
from benchmarks.hardware.workers import Done
from gemmlab.device import device

H200 = device("h200")
pytestmark = pytest.mark.measuring
ORIGIN = {"device": "NVIDIA H200", "driver": "580", "numba": "0", "numba_cuda": "0", "date": "now"}


class Toy:
    """A check of three pieces, what the GPU answers to each, and which it was asked."""

    def __init__(self):
        self.answers = {"one": 1, "two": 2, "three": 3}
        self.reasons = dict.fromkeys(self.answers, "")
        self.asked = []

    def measure(self, piece, device):
        self.asked.append(piece)
        if isinstance(self.answers[piece], BaseException):
            raise self.answers[piece]
        return {"number": self.answers[piece], "array": np.arange(3)}

    def compare(self, piece, measured, device):
        found = Comparison()
        found.equal("number", measured["number"], {"one": 1, "two": 2, "three": 3}[piece])
        return found

    def check(self, name="toy", **options):
        return Check(
            name, "numbers", lambda device: self.reasons, self.measure, self.compare, **options
        )


def here(function, tasks, count, until):
    """`spread` in this process."""
    for task in tasks:
        if time.monotonic() >= until:
            return
        try:
            yield Done(task, function(task))
        except Exception as error:
            yield Done(task, failed=f"{type(error).__name__}: {error}")


@pytest.fixture
def toy(monkeypatch, tmp_path):
    """The only check, on a machine that says it has an H200."""
    one = Toy()
    monkeypatch.setattr(validate, "CHECKS", {"toy": one.check()})
    monkeypatch.setattr(validate, "gpu_status", lambda: SimpleNamespace(works=True, driver="580"))
    monkeypatch.setattr(validate, "detect", lambda: H200)
    monkeypatch.setattr(validate, "spread", here)
    monkeypatch.setattr(machine, "origin", lambda tool="": ORIGIN)
    monkeypatch.setattr(validate, "STATE", tmp_path / "state")
    monkeypatch.setattr(store, "RECORDED", tmp_path / "recorded")
    return one


def test_nothing_differs(toy, capsys):
    assert validate.main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("NVIDIA H200 SXM, driver 580; ")
    assert lines[1].split()[:8] == ["toy", "3/3", "pieces", "3", "compared", "0", "differ", "0"]
    assert lines[2].startswith("nothing differs; ")


def test_a_second_call_does_nothing_again(toy):
    validate.main([])
    assert validate.main([]) == 0
    assert toy.asked == ["one", "two", "three"]
    assert validate.main(["--again"]) == 0
    assert len(toy.asked) == 6


def test_a_change_of_the_sources_begins_anew(toy, monkeypatch):
    validate.main([])
    monkeypatch.setattr(validate, "fingerprint", lambda: "another")
    validate.main([])
    assert len(toy.asked) == 6


def test_an_interrupted_run_goes_on(toy, capsys):
    toy.answers["two"] = KeyboardInterrupt()
    assert validate.main([]) == 3
    assert "interrupted; the same command goes on from here" in capsys.readouterr().out
    toy.answers["two"] = 2
    assert validate.main([]) == 0
    assert toy.asked == ["one", "two", "two", "three"]


def test_it_stops_in_time(toy, capsys):
    assert validate.main(["--seconds", "0"]) == 3
    out = capsys.readouterr().out
    assert "toy                 0/3 pieces" in out
    assert "3 pieces are left; " in out
    assert toy.asked == []
    assert validate.main(["--seconds", "100"]) == 0


def test_a_difference_is_told(toy, capsys):
    toy.answers["two"] = 7
    assert validate.main([]) == 1
    out = capsys.readouterr().out
    assert "3 compared       1 differ   0 failed" in out
    assert "    two: number: measured 7, here 2\n" in out
    assert "there are differences; " in out
    assert validate.main([]) == 1  # it is known, and told again
    assert "    two: number: measured 7, here 2\n" in capsys.readouterr().out


def test_what_fails_is_told_and_tried_again(toy, capsys):
    toy.answers["two"] = RuntimeError("an illegal memory access")
    assert validate.main([]) == 1
    out = capsys.readouterr().out
    assert "2/3 pieces" in out
    assert "    two: failed: RuntimeError: an illegal memory access\n" in out
    toy.answers["two"] = 2
    assert validate.main([]) == 0
    assert toy.asked == ["one", "two", "three", "two"]


def test_what_does_not_apply_is_left_out_with_its_reason(toy, capsys):
    toy.reasons["one"] = "needs compute capability 10.0"
    toy.answers["two"] = UnavailableError("the counters may not be read")
    assert validate.main([]) == 0
    out = capsys.readouterr().out
    assert toy.asked == ["two", "three"]
    assert "    1 left out: needs compute capability 10.0\n" in out
    assert "    1 left out: the counters may not be read\n" in out


def test_a_check_without_its_tool_is_left_out(toy, monkeypatch, capsys):
    monkeypatch.setattr(validate, "CHECKS", {"toy": toy.check(tool="ncu")})
    monkeypatch.setattr(machine, "tool", lambda name: None)
    assert validate.main([]) == 0
    assert "    3 left out: ncu is neither on the PATH nor in " in capsys.readouterr().out
    assert toy.asked == []


def test_checks_are_chosen_by_name(toy, monkeypatch, capsys):
    checks = {"toy": toy.check(), "game": toy.check("game", tool="ncu")}
    monkeypatch.setattr(validate, "CHECKS", checks)
    monkeypatch.setattr(machine, "tool", lambda name: "/bin/ncu")
    assert validate.main(["game"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()[1:2]] == ["game"]
    assert validate.main([]) == 0
    assert len(toy.asked) == 6
    with pytest.raises(SystemExit) as ended:
        validate.main(["toys"])
    assert ended.value.code == 2
    assert "there is no check 'toys'; there are: toy, game" in capsys.readouterr().err


def test_results_are_recorded(toy, capsys):
    toy.reasons["one"] = "needs compute capability 10.0"
    assert validate.main(["--record"]) == 0
    assert "toy: recorded in " in capsys.readouterr().out
    found = store.read(store.RECORDED / "h200" / "toy")
    assert found["one"].left_out == "needs compute capability 10.0"
    assert found["two"].measured["number"] == 2
    assert found["two"].measured["array"].tolist() == [0, 1, 2]
    assert found["two"].origin == ORIGIN
    assert (found["two"].compared, found["two"].differing) == (1, 0)


def test_half_a_check_is_not_recorded(toy, capsys):
    toy.answers["two"] = RuntimeError("no")
    assert validate.main(["--record"]) == 1
    assert "toy: not recorded, since pieces are missing" in capsys.readouterr().out
    assert not store.RECORDED.exists()


def test_an_unknown_gpu_has_no_records(toy, monkeypatch, capsys):
    monkeypatch.setattr(validate, "detect", lambda: replace(H200, name="my_gpu"))
    assert validate.main(["--record"]) == 0
    assert "not recorded, since gemmlab/devices has no my_gpu.toml" in capsys.readouterr().out
    assert not store.RECORDED.exists()


def test_a_check_that_needs_no_record_has_none(toy, monkeypatch):
    monkeypatch.setattr(validate, "CHECKS", {"toy": toy.check(kept=None)})
    assert validate.main(["--record"]) == 0
    assert not store.RECORDED.exists()


def test_without_a_gpu_there_is_nothing_to_compare_with(toy, monkeypatch, capsys):
    monkeypatch.setattr(
        validate, "gpu_status", lambda: SimpleNamespace(works=False, reason="no NVIDIA driver")
    )
    assert validate.main([]) == 2
    assert "no GPU works here" in (out := capsys.readouterr().out)
    assert "no NVIDIA driver" in out
    assert toy.asked == []


def test_names_of_pieces_fit_into_files():
    for name, check in validate.CHECKS.items():
        assert name == check.name
        pieces = check.pieces(H200)
        assert all("/" not in piece for piece in pieces)
        paths = {validate.Progress(check, store.RECORDED, pieces).path(p) for p in pieces}
        assert len(paths) == len(pieces)


@pytest.mark.parametrize(
    ("name", "check", "reason"),
    [
        ("t4", "dot_products", "mma_m16n8k16_f32_f16 needs compute capability 8.0"),
        ("rtx4090", "dot_products", "compute capability 8.9 round is not known"),
        ("a100_80gb", "instructions", "stmatrix_x1 needs compute capability 9.0"),
        ("t4", "layouts", "needs compute capability 8.0"),
        ("v100", "wide_accesses", "needs compute capability 7.5"),
        ("a100_80gb", "sanitizer", "known for sm_90"),
    ],
)
def test_a_lesser_gpu_leaves_out_what_it_does_not_have(name, check, reason):
    pieces = validate.CHECKS[check].pieces(device(name))
    assert any(reason in why for why in pieces.values())
    assert any(not why for why in pieces.values()) == ((name, check) != ("rtx4090", "dot_products"))

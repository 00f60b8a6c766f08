"""The file of results: whole, of the kernels that are here, refused if edited or incomplete."""

import json
from dataclasses import replace

import pytest

from gemmlab.measure import microbenchmarks as results
from gemmlab.measure.microbenchmarks import REQUIRED, LaunchTiming, LoopTiming, Results
from gemmlab.measure.store import RecordError

PROVENANCE = dict.fromkeys(REQUIRED, "told")
LOOP = LoopTiming("a", 4, 1, 100, ((410,), (400,)), (210, 200), "0" * 16, "1" * 16)
LAUNCH = LaunchTiming("b", 132, 4, 1 << 20, (4000, 5000, 6000), "2" * 16, "3" * 16)
SOME = Results(PROVENANCE, (LOOP, replace(LOOP, warps=8)), (LAUNCH,))


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "gpu" / results.FILE
    results.write(path, SOME)
    return path


def test_what_is_written_is_read(path):
    assert results.read(path) == SOME == results.load("gpu", path.parents[1])


def test_a_timing_of_a_loop():
    assert LOOP.each == 4.0
    assert LOOP.clock_hz == pytest.approx((410 / 210 + 400 / 200) / 2 * 1e9)


def test_a_timing_of_launches():
    assert LAUNCH.seconds == 5e-6 / 4
    assert LAUNCH.bytes_per_second == (1 << 20) / (5e-6 / 4)


def test_rows_are_found_by_name():
    assert SOME.loop("a", 8).warps == 8
    assert SOME.launch("b") == SOME.launch("b", 132) == LAUNCH
    with pytest.raises(LookupError, match="'a', warps=2, is not timed on told; warps 4, 8"):
        SOME.loop("a", 2)
    with pytest.raises(LookupError, match="nothing of that name"):
        SOME.launch("c")


def test_a_device_without_a_file_is_refused(path):
    with pytest.raises(LookupError, match="no microbenchmarks.json of 'v100'; there is one of gpu"):
        results.load("v100", path.parents[1])


@pytest.mark.parametrize("name", REQUIRED)
def test_provenance_is_whole(name, tmp_path):
    with pytest.raises(RecordError, match=f"its provenance lacks {name}"):
        results.write(tmp_path / "x.json", replace(SOME, provenance={**PROVENANCE, name: " "}))


def edit(path, change):
    content = json.loads(path.read_text("utf-8"))
    change(content)
    path.write_text(json.dumps(content), "utf-8")


def test_an_edited_file_is_refused(path):
    edit(path, lambda c: c["loops"][0]["cycles"][0].__setitem__(0, 300))
    with pytest.raises(RecordError, match=r"edited: its content has .*record --microbenchmarks"):
        results.read(path)


def test_a_timing_has_launches():
    for row in (LOOP, LAUNCH):
        with pytest.raises(ValueError, match="was not launched"):
            replace(row, ns=())

"""The recorded timings of fragments: whole, of this source, refused if edited."""

import json

import pytest

from benchmarks import fragment_uses as benchmark
from gemmlab import plots
from gemmlab.kernels.fragments import SIZES, WHERE
from gemmlab.measure.benchmarks import fragment_uses
from gemmlab.measure.store import ROOT, RecordError

FILE = "fragment_uses.json"
RECORDED = ROOT / "h200" / FILE


def test_every_use_size_and_batch_is_recorded_for_every_place():
    rows = fragment_uses("h200").rows
    found = {(row.name, row.m, row.batch) for row in rows}
    assert len(found) == len(rows) == 4 * len(SIZES) * len(benchmark.BATCHES)
    for row in rows:
        assert set(row.seconds) == set(WHERE)
        for low, median, high in row.seconds.values():
            assert 0 < low <= median <= high < 1
        assert row.speedup("registers") == 1


def test_recorded_are_the_kernels_that_are_here():
    assert fragment_uses("h200").provenance["source_sha256"] == benchmark.sources()


def test_rows_hold_what_the_benchmark_checked():
    for row in json.loads(RECORDED.read_text("utf-8"))["rows"]:
        assert 0 < row["error"] < benchmark.ALIKE
        for where, taken in row["resources"].items():
            assert taken["local_bytes"] == 0
            assert (taken["shared_bytes"] > 0) == (where != "registers")


def test_what_does_not_fit_in_l2_moves_nearly_as_fast_as_the_memory_and_no_faster():
    from gemmlab import device

    gpu = device("h200")
    large = [row for row in fragment_uses("h200").rows if row.bytes > 4 * gpu.l2_bytes]
    assert large
    for row in large:
        fastest = row.bytes / min(row.seconds[where][0] for where in WHERE)
        assert 0.5 * gpu.dram_bandwidth < fastest < gpu.dram_bandwidth


def test_a_device_without_records_is_refused():
    with pytest.raises(LookupError, match="no fragment_uses.json of 'v100'; there is one of h200"):
        fragment_uses("v100")


def test_an_edited_file_is_refused(tmp_path):
    path = tmp_path / "h200" / FILE
    path.parent.mkdir()
    text = json.loads(RECORDED.read_text("utf-8"))
    text["rows"][0]["ns"]["shared"][1] *= 2
    path.write_text(json.dumps(text), "utf-8")
    with pytest.raises(RecordError, match="edited"):
        fragment_uses("h200", tmp_path)


def test_figure_draws_each_use_and_size_once():
    rows = fragment_uses("h200").rows
    _, (ax,) = plots.figure()
    lines = plots.speedups(ax, rows, "shared")
    assert len(lines) == 4 * len(SIZES)
    x, y = lines["householder", 16].get_data()
    assert list(x) == sorted(benchmark.BATCHES)
    expected = [u.speedup("shared") for u in rows if (u.name, u.m) == ("householder", 16)]
    assert list(y) == expected
    assert min(line.get_ydata().min() for line in lines.values()) > ax.get_ylim()[0]

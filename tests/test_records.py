import hashlib
import json
import math
from dataclasses import replace

import pytest

from gemmlab import Gemm, Measurement, Tiling, kernels, records
from gemmlab.backends import recorded
from gemmlab.records import RecordError

PROVENANCE = {
    "date": "2026-01-31T12:00:00+00:00",
    "driver": "580.65",
    "cuda": "13.0",
    "python": "3.12.1",
    "numpy": "2.3.0",
    "numba": "0.62.0",
    "sm_clock_hz": "1980000000",
    "power_watts": "612.5",
    "data": "normal, seed 0",
    "l2": "flushed",
    "source_sha256": "ab" * 32,
}


def measured(n=256, kernel=kernels.tiled, tiling=None, **changes):
    fields = {
        "kernel": kernel.name,
        "problem": Gemm(n, n, n),
        "tiling": kernel.choose(tiling),
        "backend": "gpu",
        "device": "h200",
        "device_title": "NVIDIA H200 SXM",
        "error": 1e-7,
        "tolerance": 1e-5,
        "samples": (1.23456789e-5, 2e-5, 1.5e-5),
        "provenance": PROVENANCE,
    }
    return Measurement(**{**fields, **changes})


def told(**changes):
    return measured(provenance={**PROVENANCE, **changes})


def without(name):
    return measured(provenance={k: v for k, v in PROVENANCE.items() if k != name})


def resealed(line, **changes):
    """The line with other fields and a checksum that fits them."""
    record = {**json.loads(line), **changes}
    del record["sha256"]
    text = json.dumps(record, sort_keys=True, separators=(",", ":"))
    return json.dumps({**record, "sha256": hashlib.sha256(text.encode()).hexdigest()[:16]})


@pytest.fixture
def root(tmp_path):
    for n in (256, 512, 1000, 4096):
        records.append(tmp_path / "h200" / "tiled.jsonl", measured(n))
    records.append(tmp_path / "h200" / "tiled.jsonl", measured(512, tiling=Tiling.square(32)))
    records.append(tmp_path / "h200" / "naive.jsonl", measured(512, kernels.naive))
    return tmp_path


# ------------------------------------------------------------------------------------- one line


@pytest.mark.parametrize(
    "m",
    [
        measured(),
        measured(kernel=kernels.cublas),
        measured(problem=Gemm(1, 2, 3, alpha=0.1, beta=-2.5, dtype="float16")),
        measured(error=0.0),
        measured(device_title="Größe ×"),
        told(sm_clock_hz=records.UNKNOWN, power_watts=records.UNKNOWN),
    ],
)
def test_a_line_gives_back_what_was_measured(m):
    line = records.to_line(m)
    assert "\n" not in line
    back = records.from_line(line)
    assert back == replace(m, backend="recorded", samples=back.samples)
    assert back.samples == pytest.approx(m.samples, rel=5e-6)
    assert records.to_line(back) == line


def test_samples_keep_six_digits():
    assert records.from_line(records.to_line(measured())).samples == (1.23457e-5, 2e-5, 1.5e-5)


def test_source_says_where_and_when():
    source = records.from_line(records.to_line(measured())).source
    assert source == "recorded on NVIDIA H200 SXM, 2026-01-31"


@pytest.mark.parametrize("name", records.REQUIRED)
def test_provenance_is_required(name):
    for m in (without(name), told(**{name: " "})):
        with pytest.raises(RecordError, match=f"lacks {name}"):
            records.to_line(m)


@pytest.mark.parametrize(
    ("m", "message"),
    [
        (measured(error=math.nan), "error nan"),
        (measured(error=math.inf), "error inf"),
        (measured(error=1e-3), "error 0.001 is not within 1e-05"),
        (measured(samples=()), r"samples=\[\]"),
        (measured(samples=(1e-3, math.nan)), "nan"),
        (measured(samples=(1e-3, -1e-3)), "-0.001"),
        (without("numba"), "numba, cublas"),
        (told(numba="not installed"), "numba, cublas"),
        (told(date="yesterday"), "'yesterday' is not ISO 8601"),
        (told(date="2026-01-31T12:00:00"), "UTC"),
        (told(date="2026-01-31T12:00:00+02:00"), "UTC"),
        (told(sm_clock_hz="fast"), "sm_clock_hz='fast'"),
        (told(power_watts="nan"), "power_watts='nan'"),
    ],
)
def test_what_is_not_worth_keeping_is_refused(m, message, tmp_path):
    path = tmp_path / "tiled.jsonl"
    with pytest.raises(RecordError, match=message):
        records.append(path, m)
    assert not path.exists()


LINE = records.to_line(measured())


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (LINE[:-40], "truncated"),
        (LINE.replace('"n":256', '"n":128'), "edited"),
        (LINE.replace("2e-05", "1e-05"), "edited"),
        (LINE.replace("612.5", "700"), "edited"),
        (LINE.replace("2e-05", "NaN"), "NaN is not JSON"),
        ("[1, 2]", "list instead of an object"),
        ("{}", "schema None is not 1"),
        (resealed(LINE, schema=2), "schema 2 is not 1.*update gemmlab"),
        (resealed(LINE, note="hello"), "note"),
        (json.dumps({k: v for k, v in json.loads(LINE).items() if k != "device"}), "device"),
        (resealed(LINE, error=1.0), "error 1.0 is not within"),
        (resealed(LINE, error="small"), "not supported"),
        (resealed(LINE, samples=["1"]), "not supported"),
        (resealed(LINE, problem={"m": 0, "n": 1, "k": 1}), "m=0"),
        (resealed(LINE, problem={"rows": 1}), "rows"),
        (resealed(LINE, provenance=[]), "get"),
        (resealed(LINE, provenance={"date": PROVENANCE["date"]}), "lacks driver"),
    ],
)
def test_a_line_that_cannot_be_trusted_is_one_clear_error(line, message, tmp_path):
    path = tmp_path / "tiled.jsonl"
    path.write_text(f"{LINE}\n{line}\n", "utf-8")
    with pytest.raises(RecordError, match=message) as caught:
        records.read(path)
    text = str(caught.value)
    assert text.startswith(f"{path}, line 2: ")
    assert "git" in text
    assert "gemmlab record" in text
    assert len(text.splitlines()) == 1


def test_other_line_ends_and_order_of_keys_are_no_edit(tmp_path):
    path = tmp_path / "tiled.jsonl"
    shuffled = json.dumps(dict(reversed(json.loads(LINE).items())))
    path.write_bytes(f"{LINE}\r\n{shuffled}\r\n".encode())
    assert records.read(path) == [records.from_line(LINE)] * 2


# ---------------------------------------------------------------------------------------- files


def test_append_adds_one_line_and_makes_the_folder(tmp_path):
    path = tmp_path / "new" / "tiled.jsonl"
    for n in (256, 512):
        records.append(path, measured(n))
    assert [m.problem.n for m in records.read(path)] == [256, 512]
    assert path.read_bytes().count(b"\n") == 2


def test_append_does_not_write_behind_a_truncated_line(tmp_path):
    path = tmp_path / "tiled.jsonl"
    path.write_text(LINE[:50], "utf-8")
    with pytest.raises(RecordError, match="middle of a line"):
        records.append(path, measured())
    assert path.read_text("utf-8") == LINE[:50]


def test_not_utf8_is_one_clear_error(tmp_path):
    path = tmp_path / "tiled.jsonl"
    path.write_bytes(b"\xff\xfe\n")
    with pytest.raises(RecordError, match="not UTF-8"):
        records.read(path)


def test_reading_is_cached_until_the_file_changes(tmp_path):
    path = tmp_path / "tiled.jsonl"
    records.append(path, measured(256))
    first = records.read(path)
    assert records.read(path)[0] is first[0]
    first.clear()  # a caller's list is its own
    records.append(path, measured(512))
    assert [m.problem.n for m in records.read(path)] == [256, 512]


# ---------------------------------------------------------------------------------- the library


def test_load_is_ordered_and_can_be_limited_to_a_kernel(root):
    assert records.devices(root) == ["h200"]
    everything = records.load("h200", root=root)
    assert [m.kernel for m in everything] == ["naive"] + ["tiled"] * 5
    tiled = records.load("h200", kernels.tiled, root)
    assert [m.problem.n for m in tiled] == [256, 512, 1000, 4096, 512]
    assert records.load("h200", "tiled", root) == tiled


def test_load_gives_the_latest_of_several(root):
    later = {**PROVENANCE, "date": "2027-01-01T00:00:00+00:00"}
    earlier = {**PROVENANCE, "date": "2025-01-01T00:00:00+00:00"}
    for provenance in (later, earlier):
        records.append(root / "h200" / "tiled.jsonl", measured(provenance=provenance))
    found = records.find(kernels.tiled, Gemm(256, 256, 256), root=root)
    assert found.provenance["date"] == later["date"]
    assert len(records.load("h200", kernels.tiled, root)) == 5


def test_load_names_what_there_is(root, tmp_path):
    with pytest.raises(LookupError, match="'b200'; there are measurements of h200"):
        records.load("b200", root=root)
    with pytest.raises(LookupError, match=r"'cublas' is not recorded.* naive, tiled"):
        records.load("h200", "cublas", root)
    with pytest.raises(LookupError, match="no device"):
        records.load("h200", root=tmp_path / "empty")


def test_load_refuses_a_measurement_of_another_device(root):
    records.append(root / "h200" / "tiled.jsonl", measured(device="t4"))
    with pytest.raises(RecordError, match="a measurement of t4 among those of h200"):
        records.load("h200", root=root)


def test_find_takes_the_tiling_into_account(root):
    problem = Gemm(512, 512, 512)
    for tiling in (None, Tiling.square(16), Tiling.square(32)):
        found = records.find(kernels.tiled, problem, tiling, root=root)
        assert found.tiling == kernels.tiled.choose(tiling)
        assert found.problem == problem


def test_find_lists_the_nearest(root):
    with pytest.raises(LookupError) as caught:
        records.find(kernels.tiled, Gemm(600, 512, 512), Tiling.square(32), root=root)
    asked, _, nearest = str(caught.value).partition("; the nearest are ")
    assert asked == ("tiled 600×512×512 float32 with tile 32×32×32 is not recorded on h200")
    first, second, third, *_ = nearest.split("; ")
    assert first == "tiled 512×512×512 float32 with tile 32×32×32"
    assert second == "tiled 512×512×512 float32 with tile 16×16×16"
    assert third.startswith("tiled 1000×1000×1000")


def test_find_says_what_differs_where_sizes_agree(root):
    with pytest.raises(LookupError, match="float32, α=1, β=2 with tile"):
        records.find(kernels.tiled, Gemm(256, 256, 256, beta=2), root=root)


def test_find_refuses_a_tiling_that_the_kernel_cannot_use(root):
    with pytest.raises(ValueError, match="square"):
        records.find(kernels.tiled, Gemm(256, 256, 256), Tiling((8, 8, 16)), root=root)


def test_the_recorded_backend_finds(root, monkeypatch):
    monkeypatch.setattr(records.find, "__defaults__", (None, "h200", root))
    found = recorded.run(kernels.tiled, Gemm(512, 512, 512), tiling=Tiling.square(32))
    assert (found.backend, found.tiling) == ("recorded", Tiling.square(32))
    with pytest.raises(LookupError, match="'t4'"):
        recorded.run(kernels.tiled, Gemm(512, 512, 512), device="t4")


def test_every_shipped_record_is_right():
    for name in records.devices():
        for m in records.load(name):
            assert m.passed
            assert m.source.startswith(f"recorded on {m.device_title}, 20")

import hashlib
import json
import math
import multiprocessing
import os
from dataclasses import replace

import pytest

from gemmlab import Gemm, Measurement, Tiling, kernels, records
from gemmlab.measure import backends
from gemmlab.measure.measurement import RESOURCES as RESOURCE_NAMES
from gemmlab.measure.records import RecordError
from tests.support.faults import RAISED, faults

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be copied here")

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


def written(m):
    """The two lines of a measurement as one text."""
    return "\n".join(records.to_lines(m))


def resealed(text, **changes):
    """The two lines with other fields and a checksum that fits them."""
    shared, own = map(json.loads, text.split("\n"))
    for name, value in changes.items():
        (shared if name in ("schema", "kernel", "device", "note") else own)[name] = value
    del own["sha256"]
    content = json.dumps([shared, own], sort_keys=True, separators=(",", ":"))
    own["sha256"] = hashlib.sha256(content.encode()).hexdigest()[:16]
    return f"{json.dumps(shared)}\n{json.dumps(own)}"


def lacking(text, name):
    return "\n".join(
        json.dumps({k: v for k, v in json.loads(line).items() if k != name})
        for line in text.split("\n")
    )


@pytest.fixture
def root(tmp_path):
    for n in (256, 512, 1000, 4096):
        records.append(tmp_path / "h200" / "tiled.jsonl", measured(n))
    records.append(tmp_path / "h200" / "tiled.jsonl", measured(512, tiling=Tiling.square(32)))
    records.append(tmp_path / "h200" / "naive.jsonl", measured(512, kernels.naive))
    return tmp_path


# ------------------------------------------------------------------------------------ two lines

RESOURCES = dict.fromkeys(RESOURCE_NAMES, 1)


@pytest.mark.parametrize(
    "m",
    [
        measured(),
        measured(kernel=kernels.cublas),
        measured(problem=Gemm(1, 2, 3, alpha=0.1, beta=-2.5, dtype="float16", layout="tn")),
        measured(problem=Gemm(1, 2, 3, dtype="float64", accumulate="float32")),
        measured(problem=Gemm(1, 2, 3, dtype="bfloat16", out_dtype="float32")),
        measured(tiling=Tiling((8, 8, 8))),
        *(measured(kernel=k) for k in kernels.LADDER),
        measured(resources=RESOURCES),
        measured(error=0.0),
        measured(device_title="Größe ×"),
        told(sm_clock_hz=records.UNKNOWN, power_watts=records.UNKNOWN),
        told(throttle="power cap", check="every element, float64"),
    ],
)
def test_two_lines_give_back_what_was_measured(m):
    shared, own = records.to_lines(m)
    assert "\n" not in shared + own
    back = records.from_lines(shared, own)
    assert back == replace(m, backend="recorded", samples=back.samples)
    assert back.samples == pytest.approx(m.samples, abs=0.5e-9)
    assert records.to_lines(back) == (shared, own)


def test_samples_are_whole_nanoseconds():
    assert records.from_lines(*records.to_lines(measured())).samples == (1.2346e-5, 2e-5, 1.5e-5)


def test_what_is_usual_is_not_written():
    shared, own = map(json.loads, records.to_lines(measured()))
    assert own["problem"] == {"m": 256, "n": 256, "k": 256}
    assert own["tiling"] == {"block": [16, 16, 16]}
    assert own["provenance"].keys() == {"date", "sm_clock_hz", "power_watts"}
    assert not own["provenance"].keys() & shared["provenance"].keys()
    assert (own["shortest_ns"], own["over_ns"]) == (12346, [0, 7654, 2654])


@pytest.mark.parametrize(
    ("formats", "written"),
    [
        ({"dtype": "tf32"}, {"dtype": "tf32"}),
        ({"dtype": "float64", "accumulate": "float64"}, {"dtype": "float64"}),
        ({"dtype": "float16", "out_dtype": "float16"}, {"dtype": "float16"}),
        ({"accumulate": "float64"}, {"accumulate": "float64"}),
        ({"out_dtype": "float16"}, {"out_dtype": "float16"}),
    ],
)
def test_formats_that_follow_from_others_are_not_written(formats, written):
    _, own = map(json.loads, records.to_lines(measured(problem=Gemm(8, 8, 8, **formats))))
    assert own["problem"] == {"m": 8, "n": 8, "k": 8, **written}


def test_source_says_where_and_when():
    source = records.from_lines(*records.to_lines(measured())).source
    assert source == "recorded on NVIDIA H200 SXM, 2026-01-31"


@pytest.mark.parametrize("name", records.REQUIRED)
def test_provenance_is_required(name):
    for m in (without(name), told(**{name: " "})):
        with pytest.raises(RecordError, match=f"lacks {name}"):
            records.to_lines(m)


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
        (measured(resources={"registers": -1}), "'registers': -1} are not counts"),
        (measured(resources={"registers": 1.5}), "'registers': 1.5} are not counts"),
    ],
)
def test_what_is_not_worth_keeping_is_refused(m, message, tmp_path):
    path = tmp_path / "tiled.jsonl"
    with pytest.raises(RecordError, match=message):
        records.append(path, m)
    assert not path.exists()


TEXT = written(measured())


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (TEXT[:-40], 3, "truncated"),
        (TEXT.replace('"n":256', '"n":128'), 3, "edited"),
        (TEXT.replace("7654", "7655"), 3, "edited"),
        (TEXT.replace("612.5", "700"), 3, "edited"),
        (TEXT.replace("580.65", "580.66"), 3, "edited"),
        (TEXT.replace("H200", "H100"), 3, "edited"),
        (TEXT.replace("7654", "NaN"), 3, "edited"),
        ("[1, 2]", 2, "list instead of an object"),
        ("{}", 2, "wrong fields"),
        (resealed(TEXT, schema=1), 2, "schema 1 is not 2.*update gemmlab"),
        (resealed(TEXT, schema=3), 2, "schema 3 is not 2.*update gemmlab"),
        (resealed(TEXT, note="hello"), 2, "note"),
        (lacking(TEXT, "device"), 2, "device"),
        (lacking(TEXT, "problem"), 3, "problem"),
        (resealed(TEXT, error=1.0), 3, "error 1.0 is not within"),
        (resealed(TEXT, error="small"), 3, "not supported"),
        (resealed(TEXT, over_ns=["1"]), 3, "unsupported"),
        (resealed(TEXT, problem={"m": 0, "n": 1, "k": 1}), 3, "m=0"),
        (resealed(TEXT, problem={"rows": 1}), 3, "rows"),
        (resealed(TEXT, resources={"wings": 2}), 3, "'wings' is not one of registers"),
        (resealed(TEXT, provenance=[]), 3, "mapping"),
        (resealed(TEXT, provenance={"date": "now"}), 3, "lacks sm_clock_hz"),
    ],
)
def test_text_that_cannot_be_trusted_is_one_clear_error(text, line, message, tmp_path):
    path = tmp_path / "tiled.jsonl"
    first, *_ = records.to_lines(told(python="3.13.0"))
    path.write_text(f"{first}\n{text}\n", "utf-8")
    with pytest.raises(RecordError, match=message) as caught:
        records.read(path)
    text = str(caught.value)
    assert text.startswith(f"{path}, line {line}: ")
    assert "git" in text
    assert "gemmlab record" in text
    assert len(text.splitlines()) == 1


def test_a_measurement_under_what_others_share_is_an_edit(tmp_path):
    path = tmp_path / "tiled.jsonl"
    other, _ = records.to_lines(told(python="3.13.0"))
    _, own = records.to_lines(measured())
    path.write_text(f"{other}\n{own}\n", "utf-8")
    with pytest.raises(RecordError, match="line 2: edited"):
        records.read(path)


def test_a_file_must_begin_with_what_is_shared(tmp_path):
    path = tmp_path / "tiled.jsonl"
    path.write_text(records.to_lines(measured())[1] + "\n", "utf-8")
    with pytest.raises(RecordError, match="line 1: schema None is not 2"):
        records.read(path)


def test_other_line_ends_and_order_of_keys_are_no_edit(tmp_path):
    path = tmp_path / "tiled.jsonl"
    shared, own = TEXT.split("\n")
    shuffled = [json.dumps(dict(reversed(json.loads(line).items()))) for line in (shared, own)]
    path.write_bytes("\r\n".join([shared, own, *shuffled, ""]).encode())
    assert records.read(path) == [records.from_lines(shared, own)] * 2


# ---------------------------------------------------------------------------------------- files


def test_append_adds_one_line_and_makes_the_folder(tmp_path):
    path = tmp_path / "new" / "tiled.jsonl"
    for n in (256, 512):
        records.append(path, measured(n))
    assert [m.problem.n for m in records.read(path)] == [256, 512]
    assert path.read_bytes().count(b"\n") == 3  # what both share stands above them


def test_append_says_what_is_shared_where_it_changes(tmp_path):
    path = tmp_path / "tiled.jsonl"
    versions = ["3.12.1", "3.12.1", "3.13.0", "3.12.1"]
    for version in versions:
        records.append(path, told(python=version))
    assert [m.provenance["python"] for m in records.read(path)] == versions
    schemas = [line.startswith('{"schema"') for line in path.read_text("utf-8").splitlines()]
    assert schemas == [True, False, False, True, False, True, False]


def test_append_does_not_write_behind_a_truncated_line(tmp_path):
    path = tmp_path / "tiled.jsonl"
    path.write_text(TEXT[:50], "utf-8")
    with pytest.raises(RecordError, match="middle of a line"):
        records.append(path, measured())
    assert path.read_text("utf-8") == TEXT[:50]


@forks
def test_whatever_fails_no_record_is_lost(tmp_path, no_sync):
    """Each write, flush, sync and rename fails in turn: disk full, Ctrl-C, or killed."""
    path = tmp_path / "h200" / "tiled.jsonl"
    records.append(path, measured(256))
    before = path.read_bytes()
    records.append(path, measured(512))
    both, tried, kept = path.read_bytes(), 0, 0
    path.write_bytes(before)
    for way, step, ended in faults(lambda: records.append(path, measured(512))):
        tried, content = tried + 1, path.read_bytes()
        assert content in (before, both), (way, step)
        if way == "full":  # what says that it failed has not recorded, and the other way round
            assert content == (before if ended == RAISED else both)
        kept += [m.problem.n for m in records.read(path)][:1] == [256]
        path.write_bytes(before)
        records.append(path, measured(512))  # the next one finds nothing in its way
        assert path.read_bytes() == both
        path.write_bytes(before)
    assert kept == tried >= 18


def add_own(path, number):
    for _ in range(10):
        records.append(path, measured(256, device_title=f"GPU {number % 2}"))


@forks
def test_writers_at_the_same_time_lose_nothing(tmp_path):
    path = tmp_path / "h200" / "tiled.jsonl"
    start = multiprocessing.get_context("fork").Process
    workers = [start(target=add_own, args=(path, number)) for number in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(m.device_title for m in records.read(path)) == ["GPU 0"] * 20 + ["GPU 1"] * 20


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
    problem = Gemm(512, 512, 512)
    found = backends.run(kernels.tiled, problem, "recorded", tiling=Tiling.square(32))
    assert (found.backend, found.tiling) == ("recorded", Tiling.square(32))
    with pytest.raises(LookupError, match="'h100_sxm'"):
        backends.run(kernels.tiled, problem, "recorded", device="h100_sxm")


def test_every_shipped_record_is_right():
    for name in records.devices():
        for m in records.load(name):
            assert m.passed
            assert m.source.startswith(f"recorded on {m.device_title}, 20")

"""The store of what was recorded reads what it wrote, and refuses what cannot be trusted."""

import gzip
import json
from dataclasses import dataclass

import pytest

from gemmlab.measure import store
from gemmlab.measure.store import RecordError


@dataclass(frozen=True)
class Row:
    name: str
    sizes: tuple[int, ...]
    note: str | None = None


TOLD = {"device": "h200", "date": "2026-01-31", "columns": (3, 12)}
ROWS = [Row("Größe", (1, 2)), Row("b", (), "noted")]
TABLES = {"rows": Row, "others": dict}
OTHERS = [{"a": [1, 2.5]}, {"b": None}]


@pytest.fixture(params=["file.json", "file.json.gz"])
def path(request, tmp_path):
    path = tmp_path / "h200" / request.param
    store.write(path, TOLD, {"rows": ROWS, "others": OTHERS}, ("device", "date"))
    return path


def text_of(path):
    content = path.read_bytes()
    return (gzip.decompress(content) if path.suffix == ".gz" else content).decode()


def put(path, text):
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())


def read(path, required=()):
    return store.read(path, TABLES, required)


def test_what_is_written_is_read(path):
    found = read(path, ("device", "date"))
    assert found.provenance == {**TOLD, "columns": [3, 12]}
    assert found.tables == {"rows": tuple(ROWS), "others": tuple(OTHERS)}


def test_a_file_is_json_with_a_line_for_each_row(path):
    text = text_of(path)
    assert json.loads(text)["rows"][0] == {"name": "Größe", "sizes": [1, 2], "note": None}
    assert len(text.splitlines()) == 3 + (2 + len(ROWS)) + (2 + len(OTHERS))
    assert text.endswith("]}\n")


def test_what_is_written_twice_is_the_same(path):
    before = path.read_bytes()
    store.write(path, TOLD, {"rows": ROWS, "others": OTHERS})
    assert path.read_bytes() == before


def test_tables_may_be_empty(tmp_path):
    store.write(tmp_path / "a.json", {}, {"rows": [], "others": []})
    assert read(tmp_path / "a.json").tables == {"rows": (), "others": ()}


def test_a_file_is_read_again_only_when_it_has_changed(path):
    first = read(path)
    assert read(path) is first
    store.write(path, TOLD, {"rows": ROWS[:1], "others": []})
    assert read(path).tables["rows"] == (ROWS[0],)


@pytest.mark.parametrize("value", [None, "", " "])
def test_provenance_that_is_required_must_be_there(path, value):
    told = {**TOLD, "driver": value} if value is not None else TOLD
    before = path.read_bytes()
    with pytest.raises(RecordError, match=r"cannot be written: its provenance lacks driver"):
        store.write(path, told, {"rows": ROWS}, ("device", "driver"))
    assert path.read_bytes() == before
    with pytest.raises(RecordError, match="its provenance lacks driver, cuda; restore"):
        read(path, ("device", "driver", "cuda"))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[1,2]", "[1,3]", "edited: its content has sha256"),
        ("h200", "h100", "edited: its content has sha256"),
        ('"sha256":"', '"sha256":"0', "edited: its content has sha256"),
        ('{"name":"b","sizes":[],"note":"noted"}', "{}", "edited"),
        ('"schema":1', '"schema":2', "schema 2 is not 1; update gemmlab if a newer one"),
        ('"schema":1', '"schema":null', "schema None is not 1"),
        ('"others":', '"more":', "wrong fields: more, others missing or not known"),
        ('"schema":1', '"schema":1,"note":""', "wrong fields: note missing or not known"),
        ("]}\n", "]", "truncated, or not JSON"),
    ],
)
def test_what_cannot_be_trusted_is_one_clear_error(path, old, new, message):
    text = text_of(path)
    assert old in text
    put(path, text.replace(old, new))
    with pytest.raises(RecordError, match=message) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert "restore the file with git" in str(caught.value)


@pytest.mark.parametrize("keep", [0, 10, 100, -2, -20])
def test_a_truncated_file_is_refused(path, keep):
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(RecordError, match=r"truncated, or not (JSON|compressed)"):
        read(path)


def test_bytes_that_are_no_text_are_refused(tmp_path):
    for name in ("a.json", "b.json.gz"):
        (tmp_path / name).write_bytes(b"\xff\xfe")
        with pytest.raises(RecordError, match=r"not UTF-8|not compressed by gzip"):
            read(tmp_path / name)
    (tmp_path / "a.json").write_text("[1]", "utf-8")
    with pytest.raises(RecordError, match="a JSON list instead of an object"):
        read(tmp_path / "a.json")


@pytest.mark.parametrize("row", [{"name": "a"}, {"name": "a", "sizes": [], "more": 1}, ["a", 1], 7])
def test_rows_of_another_kind_are_refused(tmp_path, row):
    store.write(tmp_path / "a.json", TOLD, {"rows": [row], "others": []})
    with pytest.raises(RecordError, match="a row of 'rows' is not right .TypeError"):
        read(tmp_path / "a.json")


def test_the_cure_is_the_reader_s(path):
    put(path, text_of(path).replace("h200", "h100"))
    with pytest.raises(RecordError, match="; measure it again$"):
        store.read(path, TABLES, cure="measure it again")


def test_layout_and_order_of_keys_are_no_edit(tmp_path, path):
    before = read(path)
    content = json.loads(text_of(path))
    put(path, json.dumps(dict(reversed(content.items())), indent=1))
    assert read(path) == before


def test_an_interrupt_leaves_the_file_as_it_was(path, monkeypatch):
    before = path.read_bytes()

    def interrupted(handle):
        raise KeyboardInterrupt

    monkeypatch.setattr("os.fsync", interrupted)
    for file in (path, path.with_name("new.json")):
        with pytest.raises(KeyboardInterrupt):
            store.write(file, {}, {"rows": []})
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_a_missing_file_names_the_devices_that_have_one(path):
    root = path.parents[1]
    assert store.path_of("h200", path.name, root) == path
    with pytest.raises(LookupError, match=f"no {path.name} of 'v100'; there is one of h200"):
        store.path_of("v100", path.name, root)

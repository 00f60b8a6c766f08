"""The benchmark of `matmul` beside PyTorch, and its records."""

from types import SimpleNamespace

import pytest

from benchmarks import matmul as benchmark, readme
from gemmlab.measure import store
from gemmlab.measure.beside import Beside, Joules, beside_torch

ROWS = [
    Beside("chosen", 1, 4096, 4096, 4096, "tcec_batched", 1, 9e-4, 8e-4, 3e-3, 2.8e-3, 1e-7, 2e-7,
           4e-7, 5e-7),
    Beside("drawn", 1, 8, 9, 5, "library", 1, 2.1e-5, 9e-6, 2.0e-5, 8e-6, 1e-7, 2e-7, 1e-7, 2e-7),
    Beside("drawn anew", 1, 8, 9, 6, "library", 1, 2e-5, 8e-6, 2e-5, 8e-6, 0, 0, 0, 0),
    Beside("batch", 64, 512, 512, 512, "tcec_batched", 1, 2e-4, 1e-4, 4e-4, 3e-4, 0, 0, 0, 0),
]  # fmt: skip


def test_a_third_of_the_shapes_is_chosen_and_the_others_are_drawn_before():
    found = list(benchmark.shapes(benchmark.NEW_SEED))
    counted = [how for how, _ in found]
    assert [counted.count(how) for how in ("chosen", "drawn", "drawn anew", "batch")] == [
        20, 40, 40, 10
    ]  # fmt: skip
    old, new = (benchmark.drawn(40, seed) for seed in (benchmark.OLD_SEED, benchmark.NEW_SEED))
    assert not set(old) & set(new)
    assert 15 <= sum(all(x % 8 == 0 for x in one[1:]) for one in new) <= 30
    assert all(4 * (m * k + k * n + m * n) < benchmark.MOST_BYTES for _, m, n, k in new)


def test_calls_take_turns_and_are_waited_for():
    seen = []
    torch = SimpleNamespace(cuda=SimpleNamespace(synchronize=lambda: seen.append("done")))
    calls = [lambda: seen.append("ours"), lambda: seen.append("theirs")]
    found = benchmark.times(torch, calls, 1)
    assert len(found) == 2
    assert all(0 < x.loop < 1 for x in found)
    alone = seen[2 * benchmark.WARM_UP :][:6]
    assert alone == ["done", "ours", "done", "done", "theirs", "done"]


@pytest.fixture
def root(tmp_path):
    told = {"device": "h100_sxm", "device_title": "NVIDIA H100", "date": "2026-11-26T05:00:00"}
    tables = {"products": ROWS, "energy": [Joules(4096, 8e-4, 0.4, 2.8e-3, 1.2)]}
    store.write(tmp_path / "h100_sxm" / "matmul_torch.json", told, tables)
    return tmp_path


def test_what_is_written_is_read(root):
    found = beside_torch("h100_sxm", root)
    assert found.products == tuple(ROWS)
    assert found.products[0].ratio == pytest.approx(3.5)
    assert found.products[1].more == pytest.approx(1e-6)
    assert found.products[3].name == "64 of 512×512×512"
    with pytest.raises(LookupError, match=r"no matmul_torch.json of 'v100'"):
        beside_torch("v100", root)
    path = root / "h100_sxm" / "matmul_torch.json"
    path.write_text(path.read_text("utf-8").replace("tcec_batched", "pipelined"), "utf-8")
    with pytest.raises(store.RecordError, match="edited"):
        beside_torch("h100_sxm", root)


def test_the_table_of_the_readme(root, monkeypatch):
    monkeypatch.setattr(readme, "beside_torch", lambda device: beside_torch(device, root))
    head, _, *rows = readme.matmul_table().splitlines()
    assert rows[0].startswith("| 4096×4096×4096 | tcec_batched | 171.8 TFLOP/s | 3.50 × |")
    assert rows[1].startswith("| 64 of 512×512×512 |")
    assert all(row.count("|") == head.count("|") for row in rows[:2])
    text = "\n".join(rows)
    assert "recorded on NVIDIA H100, 2026-11-26" in text
    assert "alone 0.5 µs, 1.0 at most" in text

    def nothing(device):
        raise LookupError

    monkeypatch.setattr(readme, "beside_torch", nothing)
    assert "not recorded yet" in readme.matmul_table()

"""Counterparts of a guide's figures: the guide's own sizes on an A100, full waves on any device."""

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.guide_figures import FIGURES, FORMATS, TILE, parse_figures, plan
from benchmarks.record import main
from gemmlab import kernels, records
from gemmlab.device import device, names
from gemmlab.model.quantization import quantization
from gemmlab.problem import Gemm

A100, H200 = device("a100_80gb"), device("h200")
pytestmark = pytest.mark.measuring
LIBRARY = replace(
    kernels.cublas, arithmetic=tuple(Gemm(1, 1, 1, dtype=dtype).arithmetic for dtype in FORMATS)
)


def sizes(number, gpu=A100, tile=TILE):
    return FIGURES[number].sizes(gpu, tile)


def test_on_an_a100_the_sizes_are_the_guides():
    assert sizes(5) == [(6912, 2048, 4096)]
    seven, eight = sizes(7), sizes(8)
    assert {(m, k) for m, _, k in seven} == {(27648, 4096)}
    assert {n for _, n, _ in seven} >= {128, *range(136, 257, 8)}
    assert {(m, k) for m, _, k in eight} == {(2304, 4096)}
    jumps = (1536, 3072, 4608, 6144)
    assert {n for _, n, _ in eight} >= {1664, *jumps, *(n + 8 for n in jumps)}
    assert {k % 8 for _, _, k in sizes(2)} == set(range(8))


@pytest.mark.parametrize("name", names())
@pytest.mark.parametrize("tile", [TILE, (128, 256), (64, 64)])
def test_on_any_device_waves_are_full(name, tile):
    gpu = device(name)
    (five,) = sizes(5, gpu)
    assert quantization(Gemm(*five), gpu, TILE, per_sm=1).tiles == 4 * gpu.sms
    for m, n, k in sizes(7, gpu, tile):
        q = quantization(Gemm(m, n, k), gpu, tile, per_sm=1)
        assert q.down == gpu.sms
        assert q.waves == q.across
    last = {}
    for m, n, k in sizes(8, gpu, tile):
        q = quantization(Gemm(m, n, k), gpu, tile, per_sm=1)
        last[q.waves] = max(last.get(q.waves, 0), n)
        assert q.down <= 16
    assert set(last) == {1, 2, 3, 4, 5}
    for waves in range(1, 5):  # the largest n of each number of waves fills them
        q = quantization(Gemm(sizes(8, gpu, tile)[0][0], last[waves], 1), gpu, tile, per_sm=1)
        assert q.wave_use == 1


def test_the_library_gets_every_figure_in_each_format_and_kernels_their_tiles():
    points = plan(FIGURES.values(), [LIBRARY, kernels.warp_tiled], H200)
    keys = [(p.kernel.name, p.problem, p.tiling) for p in points]
    assert len(keys) == len(set(keys))
    of_library = [p for p in points if p.kernel is LIBRARY]
    assert {p.problem.dtype for p in of_library} == set(FORMATS)
    assert {p.tiling for p in of_library} == {None}
    found = {(p.problem.m, p.problem.n, p.problem.k) for p in of_library}
    assert found == {size for n in FIGURES for size in sizes(n, H200)}
    own = [p for p in points if p.kernel is kernels.warp_tiled]
    assert {p.problem.dtype for p in own} == {"float32"}
    assert {p.tiling for p in own} == {kernels.warp_tiled.default, *kernels.warp_tiled.tilings}
    at = kernels.warp_tiled.default.block[:2]
    expected = {*sizes(5, H200), *sizes(7, H200, at), *sizes(8, H200, at)}
    assert {(p.problem.m, p.problem.n, p.problem.k) for p in own} == expected
    assert plan(parse_figures("2"), [kernels.warp_tiled], H200) == []
    assert all(p.seconds is not None and not p.skip for p in points)


def test_figures_by_number():
    assert parse_figures("2, 8") == [FIGURES[2], FIGURES[8]]
    with pytest.raises(ValueError, match="figure '6' is not known; use 2, 3, 4, 5, 7, 8"):
        parse_figures("2,6")


def test_a_campaign_of_figures_is_listed(capsys, tmp_path):
    asked = ["--dry-run", "--kernels", "pipelined", "--out", str(tmp_path)]
    assert main(["--figures", "5", *asked]) == 0
    text = capsys.readouterr().out
    assert text.count("pipelined ") == len(kernels.pipelined.tilings)
    assert "2048x4096 float32 tile 128x256x16" in text
    assert main(["--figures", "6", *asked]) == 1


def test_figures_are_kept_beside_the_ladders_records(capsys):
    assert main(["--dry-run", "--kernels", "tiled", "--figures", "5"]) == 0
    folder = capsys.readouterr().out.splitlines()[0].partition("kept in ")[2]
    assert Path(folder).name == "figures"
    assert Path(folder).parent in {path.parent for path in records.ROOT.glob("*/*.jsonl")}

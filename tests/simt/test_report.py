"""What a simulated launch tells: counters and ratios, the listing, accesses, limits, hazards."""

import importlib.util
import inspect
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy import float32, float64

from gemmlab import Gemm, cuda, device, kernels, plots, simulate
from gemmlab.model import transactions
from gemmlab.plots.access import lines, wavefronts
from gemmlab.simt import Access, HazardError
from gemmlab.simt.report.report import Report, derived
from gemmlab.simt.syntax.source import read_source


def copy(x, out, stride):
    i = cuda.grid(1)
    out[i] = x[i * stride]


def columns(out):
    tile = cuda.shared.array((32, 32), float32)
    padded = cuda.shared.array((32, 33), float32)
    t = cuda.threadIdx.x
    tile[t, 0] = 1
    padded[t, 0] = 1
    cuda.syncthreads()
    out[t] = tile[t, 0] + padded[t, 0] + cuda.blockIdx.x


def copied(stride=1, blocks=1, threads=32, dtype=np.float32, **options):
    out = np.zeros(blocks * threads, dtype)
    x = np.arange(stride * out.size + 1, dtype=dtype)
    return simulate(copy, blocks, threads, x, out, stride, **options)


def line_of(kernel, text):
    source, first = inspect.getsourcelines(kernel)
    return first + next(i for i, line in enumerate(source) if text in line)


# ------------------------------------------------------------------------------------- ratios


@pytest.mark.parametrize(
    ("stride", "sectors", "efficiency"), [(1, 4, 1), (2, 8, 1 / 2), (32, 32, 1 / 8), (0, 1, 4)]
)
def test_ratios_of_a_strided_load(stride, sectors, efficiency):
    """By hand: 32 lanes x 4 B, of 4 sectors side by side, 8 half used, 32 with one word each."""
    ratios = copied(stride, blocks=3).derived
    assert ratios["global_load_sectors_per_request"] == sectors
    assert ratios["global_load_efficiency"] == efficiency
    assert ratios["global_store_sectors_per_request"] == 4
    assert "shared_load_wavefronts_per_request" not in ratios


def test_ratios_of_each_line():
    report = simulate(columns, 1, 32, np.zeros(32, np.float32))
    conflict = derived(report.by_line[line_of(columns, "tile[t, 0] = 1")])
    padded = derived(report.by_line[line_of(columns, "padded[t, 0] = 1")])
    assert conflict == {"shared_store_wavefronts_per_request": 32, "active_lanes": 32}
    assert padded == {"shared_store_wavefronts_per_request": 1, "active_lanes": 32}


def counted_by_hand():
    """A report filled as the machine fills it: two functions, one in another file."""
    source = read_source(copy)
    other = replace(read_source(columns), file="elsewhere.py")
    report = Report(source, (1, 1, 1), (32, 1, 1), "collect")
    line = source.first_line + 2
    for name, value in (("inst_executed", 4), ("thread_inst_executed", 100), ("inst_fp", 1)):
        report.counters_of(source, line)[name] += value
    report.counters_of(source, line)["barriers"] += 2
    report.counters_of(other, line)["barriers"] += 5
    return report, source, other, line


def test_files_and_instructions_are_told_apart():
    report, source, _, line = counted_by_hand()
    assert report.counters == {"barriers": 7}
    assert report.instructions == {"inst_executed": 4, "thread_inst_executed": 100, "inst_fp": 1}
    assert report.by_line[line]["barriers"] == 2
    assert report.by_file["elsewhere.py"] == {line: {"barriers": 5}}
    assert report.by_file[source.file] is report.by_line
    assert report.divergence == {line: 25}
    assert report.derived == {"active_lanes": 25}
    assert [name for name, _ in report.listing().parts] == ["copy", "columns"]


# ------------------------------------------------------------------------------------ listing


def test_the_listing_has_every_line_with_its_counters():
    report = simulate(columns, 2, 32, np.zeros(64, np.float32), on_hazard="collect")
    text = str(report.listing()).splitlines()
    assert text[0].startswith("columns: grid (2, 1, 1), block (32, 1, 1)")
    by_number = {int(row.split()[0]): row for row in text if re.match(r" *\d+ ", row)}
    assert sorted(by_number) == list(
        range(report.source.first_line, report.source.first_line + len(report.source.lines))
    )
    tile = by_number[line_of(columns, "tile[t, 0] = 1")]
    assert tile.split("tile[t, 0] = 1")[1].split()[-3:] == ["2", "64", "62"]
    last = by_number[line_of(columns, "out[t] =")]
    assert last.split()[-2:] == ["<-", "global-race"]
    assert "global-race: thread (0)" in text[-5]
    assert text[-3] == "  an order in which it goes wrong:"
    total = next(row.split() for row in text if row.split()[:1] == ["total"])
    # global: requests, sectors, per request; shared: requests, wavefronts, conflicts; barriers
    assert total[-7:] == ["2", "8", "4", "8", "132", "124", "2"]


def long_line(x, out):
    if cuda.grid(1) >= 0:
        out[cuda.grid(1)] = x[cuda.grid(1)] + x[31 - cuda.grid(1)] * float32(2) + x[0] * float32(3)


def test_long_lines_go_on_below():
    report = simulate(long_line, 1, 32, np.zeros(32, np.float32), np.zeros(32, np.float32))
    rows = str(report.listing()).splitlines()
    at = next(i for i, row in enumerate(rows) if "out[cuda" in row)
    first, second = rows[at : at + 2]
    assert first.split()[-3:] == ["4", "13", "3.25"]
    code = report.source.lines[2].split()
    assert first.split()[1:-5] + second.split() == code  # but for line, inst, lanes and the rest
    assert len(second) - len(second.lstrip()) > first.index("out[cuda")


def escaped(x, out):
    i = cuda.grid(1)
    if i < 10 and x[i] >= 0:  # a & b
        out[i // 2] = i


def test_the_table_is_plain_and_says_what_its_cells_are():
    report = simulate(
        escaped, 1, 32, np.zeros(32, np.float32), np.zeros(32, np.float32), on_hazard="collect"
    )
    html = report._repr_html_()
    assert html == report.listing()._repr_html_()
    tree = ElementTree.fromstring(f"<page>{html.replace('<br>', '<br/>')}</page>")  # well formed
    heads = tree.findall(".//th")
    assert {h.get("scope") for h in heads} == {"row", "col", "colgroup"}
    assert tree.find(".//caption").text.startswith("escaped: grid (1, 1, 1)")
    assert "script" not in html
    assert "class=" not in html
    rows = tree.findall(".//tbody/tr")
    assert len(rows) == len(report.source.lines)
    wide = {sum(int(cell.get("colspan", 1)) for cell in r) for r in tree.findall(".//tr")}
    assert len(wide) == 1
    code = [r.find(".//code").text for r in rows]
    assert code[2] == "    if i < 10 and x[i] >= 0:  # a & b"
    said = ["".join(r.itertext()) for r in rows]
    assert ["global-race" in text for text in said] == [False, False, False, True]


def test_without_hazards_none_is_listed():
    assert "<ul" not in copied()._repr_html_()
    assert "<-" not in str(copied().listing())


def test_the_listing_says_what_device_memory_moves():
    assert "dram_read_bytes 128, dram_write_bytes 128" in str(copied(l2="h200").listing())


# -------------------------------------------------------------------------------------- trace


@pytest.mark.parametrize("stride", [1, 2, 32])
def test_a_trace_has_the_addresses_of_every_lane(stride):
    report = copied(stride, blocks=2, threads=64, trace="out[i]")
    load, store = report.trace
    assert (load.op, load.array, load.space, load.turn) == ("load", "x", "global", 0)
    assert (store.op, store.array) == ("store", "out")
    np.testing.assert_array_equal(load.addresses, 4 * stride * np.arange(64).reshape(2, 32))
    assert load.active.all()
    assert load.sectors.tolist() == [min(4 * stride, 32)] * 2
    assert report.counters["global_load_sectors"] == 2 * load.sectors.sum()


def loop(x, out, last):
    i = cuda.grid(1)
    total = float32(0)
    for k in range(last):
        if i < 16:
            total += x[k]
    out[i] = total


def test_a_trace_is_bounded_and_knows_which_lanes_ran(monkeypatch):
    arguments = np.arange(100, dtype=np.float32), np.zeros(100, np.float32), 100
    report = simulate(loop, 1, 40, *arguments, trace=(line_of(loop, "total += x"),))
    assert [a.turn for a in report.trace] == list(range(8))
    assert report.trace[3].addresses[report.trace[3].active].tolist() == [12] * 16
    assert report.trace[0].active.sum(axis=1).tolist() == [16, 0]
    monkeypatch.setattr("gemmlab.simt.launch.LANES", 32)
    again = copied(1, blocks=4, trace="out[i]")
    assert len(again.trace) == 2  # of block 0 alone
    assert copied(1).trace == []


def test_a_line_that_is_not_there_cannot_be_traced():
    first = read_source(copy).first_line
    with pytest.raises(ValueError, match=rf"trace='y\[i\]' is no line of copy; .* {first} to"):
        copied(trace="y[i]")
    with pytest.raises(ValueError, match="trace=1 is no line of copy"):
        copied(trace=(first, 1))
    with pytest.raises(TypeError, match=r"trace=1\.5 is not a line"):
        copied(trace=1.5)


# ------------------------------------------------------------------------------- access maps


def test_the_map_of_a_unit_stride():
    found = lines(copied(trace="x[i").trace[0], [0])
    assert found.rows == ["0"]
    assert found.users == {(0, lane): [lane] for lane in range(32)}
    assert found.fetched.all()


def test_the_map_of_stride_2():
    found = lines(copied(2, trace="x[i").trace[0], [0])
    assert found.rows == ["0", "128"]
    assert found.users == {(lane // 16, 2 * lane % 32): [lane] for lane in range(32)}
    assert found.fetched.sum() == 64  # all words of 8 sectors move, half of them are used


def test_the_map_of_stride_32():
    found = lines(copied(32, trace="x[i").trace[0], [0])
    assert found.rows == [f"{128 * lane:,}" for lane in range(32)]
    assert found.users == {(lane, 0): [lane] for lane in range(32)}
    assert found.fetched.sum(axis=0).tolist() == [32] * 8 + [0] * 24


def test_the_map_of_all_warps_names_warps():
    found = lines(copied(threads=96, trace="x[i").trace[0], range(3))
    assert found.users == {(w, lane): [w] for w in range(3) for lane in range(32)}


def test_the_maps_of_a_column_and_of_a_padded_one():
    report = simulate(columns, 1, 32, np.zeros(32, np.float32), trace=("tile[t", "padded[t"))
    column, padded, *_ = report.trace
    found = wavefronts(column, [0])
    assert found.users == {(lane, 0): [lane] for lane in range(32)}
    assert found.rows == [str(i) for i in range(32)]
    assert wavefronts(padded, [0]).users == {(0, lane): [lane] for lane in range(32)}


def shared_access(words, active, width=4):
    words = np.array(words).reshape(-1, 32)
    return Access(
        1, "load", "shared", "s", width, 0, words * width, np.array(active).reshape(-1, 32), True
    )


def test_the_map_of_a_broadcast_is_one_wavefront():
    found = wavefronts(shared_access([0] * 31 + [33], [True] * 32), [0])
    assert found.users == {(0, 0): list(range(31)), (0, 1): [31]}


@given(
    st.lists(st.integers(0, 100), min_size=64, max_size=64),
    st.lists(st.booleans(), min_size=64, max_size=64),
    st.sampled_from([4, 8, 16]),
)
@settings(deadline=None, max_examples=200)
def test_maps_show_as_many_wavefronts_and_sectors_as_are_counted(words, active, width):
    """Whatever the lanes touch, and each of them is in the map."""
    access = shared_access(words, active, width)
    for warp in (0, 1):
        found = wavefronts(access, [warp])
        assert len(found.rows) == access.wavefronts[warp]
        served = {lane for users in found.users.values() for lane in users}
        assert served == set(np.flatnonzero(access.active[warp]))
    moved = lines(replace(access, space="global"), [0, 1]).fetched
    both = transactions.sectors(
        np.broadcast_to(access.addresses[0], (1, 32)), access.active[0].reshape(1, 32)
    )
    alone = lines(replace(access, space="global"), [0]).fetched
    assert alone.sum() == 8 * both.sum()
    assert moved.sum() >= alone.sum()


def test_the_figure_is_drawn_and_drawn_again():
    figure, (ax,) = plots.figure()
    load = copied(2, threads=64, trace="x[i").trace[0]
    drawn = plots.access_map(ax, load)
    assert ax.get_title(loc="left") == "x: load by warp 0, 8 sectors (256 B) for 128 B"
    assert [t.get_text() for t in drawn.numbers] == [str(lane) for lane in range(32)]
    assert drawn.image.get_array().shape == (2, 32, 3)
    report = simulate(columns, 1, 32, np.zeros(32, np.float32), trace="tile[t")
    again = plots.access_map(ax, report.trace[0], artists=drawn)
    assert again is drawn
    assert ax.get_title(loc="left") == "tile: store by warp 0, 32 wavefronts"
    assert [t.get_position() for t in drawn.numbers[:32]] == [(0, lane) for lane in range(32)]
    plots.access_map(ax, load, None, drawn)
    assert "all warps" in ax.get_title(loc="left")
    assert {t.get_text() for t in drawn.numbers} == {"0", "1"}
    assert len(ax.collections) == len(ax.images) == 1
    figure.canvas.draw()
    with pytest.raises(ValueError, match="warp=2 is outside; use 0 to 1"):
        plots.access_map(ax, load, 2)


# --------------------------------------------------------------------------- launch and limits


def dynamic(out):
    s = cuda.shared.array(0, float32)
    s[cuda.threadIdx.x] = 1
    out[cuda.threadIdx.x] = s[cuda.threadIdx.x]


def fixed_and_dynamic(out):
    s = cuda.shared.array(4096, float64)
    d = cuda.shared.array(0, float64)
    d[0] = 1
    s[0] = d[0]
    out[0] = s[0]


def test_a_block_has_the_shared_memory_of_its_device():
    out = np.zeros(32, np.float32)
    small, large = device("rtx2060"), device("h200")
    assert small.shared_bytes_per_block < 100_000 <= large.shared_bytes_per_block
    simulate(dynamic, 1, 32, out, shared_bytes=100_000, device=large)
    simulate(dynamic, 1, 32, out, shared_bytes=100_000)
    with pytest.raises(ValueError, match="shared_bytes=100000 are too much for NVIDIA .* RTX 2060"):
        simulate(dynamic, 1, 32, out, shared_bytes=100_000, device="rtx2060")
    one = np.zeros(1)
    simulate(fixed_and_dynamic, 1, 1, one, shared_bytes=32_768, device="rtx2060")
    one[:] = 0
    with pytest.raises(ValueError, match="32768 B of shared arrays and shared_bytes=32776"):
        simulate(fixed_and_dynamic, 1, 1, one, shared_bytes=32_776, device="rtx2060")
    assert one[0] == 0


def test_a_block_has_the_threads_of_its_device():
    few = replace(device("h200"), threads_per_block=64)
    copied(threads=64, device=few)
    with pytest.raises(ValueError, match="a block of 96 threads is too large; use at most 64"):
        copied(threads=96, device=few)
    with pytest.raises(ValueError, match="unknown device 'h300'"):
        copied(device="h300")


def test_a_rung_of_the_ladder_is_built_with_its_own_tiling():
    problem = Gemm(40, 24, 16)
    a, b, c = problem.operands()
    launch = kernels.tiled.configure(problem, kernels.tiled.default)
    report = simulate(kernels.tiled, *launch, float32(1), a, b, float32(0), c)
    assert problem.error(c, (a, b, c)) <= problem.tolerance
    assert report.source.tree.name == "tiled"
    for kernel in (kernels.cublas, kernels.cpu_naive):
        with pytest.raises(ValueError, match=f"{kernel.name} is not written for a GPU in Python"):
            simulate(kernel, *launch, float32(1), a, b, float32(0), c)


def square_less(x, y, out):
    i = cuda.grid(1)
    out[i] = x[i] * x[i] - y[i]


def test_contraction_can_be_chosen():
    """(1 + 2^-12)^2 - (1 + 2^-11) is 2^-24; the product alone is rounded to 1 + 2^-11."""
    x, y = np.full(4, 1 + 2.0**-12, np.float32), np.full(4, 1 + 2.0**-11, np.float32)
    for options, expected in (({}, 2.0**-24), ({"contract": False}, 0)):
        out = np.ones(4, np.float32)
        simulate(square_less, 1, 4, x, y, out, **options)
        assert out.tolist() == [expected] * 4


# ------------------------------------------------------------------------------------ hazards


def first_of(kernel, *arguments, threads=32):
    with pytest.raises(HazardError) as caught:
        simulate(kernel, 1, threads, *arguments)
    return caught.value.hazard


def read_of_another(x):
    s = cuda.shared.array(32, float32)
    t = cuda.threadIdx.x
    s[t] = 10 + t
    x[t] = s[31 - t]


def half_of_a_warp(x):
    t = cuda.threadIdx.x
    if t < 16:
        x[t] = 1
    if t < 64:
        x[t] = 2


def test_divergence_is_the_lanes_that_run():
    """By hand: 16 of 32 lanes of one warp, then both warps whole."""
    report = simulate(half_of_a_warp, 3, 64, np.zeros((64), np.float32), on_hazard="collect")
    assert report.divergence[line_of(half_of_a_warp, "= 1")] == 16
    assert report.divergence[line_of(half_of_a_warp, "= 2")] == 32
    assert report.by_line[line_of(half_of_a_warp, "= 1")]["inst_executed"] >= 3
    assert "inst_executed" not in report.counters
    assert report.instructions["inst_executed"] > 0
    text = str(report.listing())
    row = next(r for r in text.splitlines() if "= 1" in r)
    assert "16" in row.split("= 1")[1].split()[:2]


def shifted_in_place(x):
    t = cuda.threadIdx.x
    x[t] = x[t] + 1
    x[(t + 1) % 32] = 7


def test_races_tell_the_values():
    hazard = first_of(read_of_another, np.zeros(32, np.float32))
    assert "reads what thread (31) wrote, s[31] (41.0), with no barrier" in hazard.message
    hazard = first_of(shifted_in_place, np.arange(32, dtype=np.float32))
    assert "overwrites what thread (1) wrote, x[1] (2.0" in hazard.message


def one_element(x):
    x[0] = cuda.threadIdx.x


def outside(x):
    for step in range(3):
        x[cuda.grid(1) + 30] = step


@pytest.mark.parametrize("lanes", [1 << 16, 32])
def test_each_kind_is_kept_once_a_line_with_its_count(lanes, monkeypatch):
    """Elements 30 to 93 of 64, three times; 31 - t is another thread's, in each of 3 blocks."""
    monkeypatch.setattr("gemmlab.simt.launch.LANES", lanes)
    report = simulate(outside, 2, 32, np.zeros(64, np.float32), on_hazard="collect")
    (hazard,) = report.hazards
    assert (hazard.kind, hazard.count) == ("out-of-bounds", 3 * 30)
    assert "x[64] is outside, its dimension 0 has 64 elements" in hazard.message
    assert "[90 times in all]" in str(report.listing())
    report = simulate(read_of_another, 3, 32, np.zeros(32, np.float32), on_hazard="collect")
    assert report.hazards[0].kind == "shared-race"
    assert report.hazards[0].count == 3 * 32


def test_a_function_of_another_file_has_counters_and_hazards_of_its_own(tmp_path):
    """Its lines have numbers that lines of the kernel have too."""
    path = tmp_path / "helpers.py"
    first = line_of(copy, "def copy")
    path.write_text("\n" * (first - 1) + "def put(array, i, value):\n    array[i + 1] = value\n")
    spec = importlib.util.spec_from_file_location("helpers", path)
    helpers = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(helpers)
    put = helpers.put

    def kernel(x):
        put(x, cuda.grid(1), 1)

    report = simulate(kernel, 1, 32, np.zeros(32, np.float32), on_hazard="collect")
    (hazard,) = report.hazards
    assert (hazard.file, hazard.line, hazard.code) == (
        str(path), first + 1, "array[i + 1] = value",
    )  # fmt: skip
    assert report.by_file[str(path)][first + 1]["global_store_requests"] == 1
    assert first + 1 not in report.by_line
    assert report.counters["global_store_requests"] == 1
    (_, own), (name, rows) = report.listing().parts
    assert name == "put"
    assert rows[1].marks == ("out-of-bounds",)
    assert not any(row.marks for row in own)

"""One figure of each drawing of `gemmlab.plots`, as chapters make them."""

import numpy as np

from gemmlab import (
    Gemm,
    Gemms,
    Tiling,
    cuda,
    device,
    kernels,
    plots,
    predict,
    records,
    run,
    simulate,
)
from gemmlab.compiled.sm.pipes import Kind
from gemmlab.compiled.sm.result import Reason
from gemmlab.instructions import layout
from gemmlab.kernels.tensor_core.shared.shared_layouts import in_rows, swizzled
from gemmlab.measure.benchmarks import fragment_uses
from gemmlab.measure.inside import inside as marks
from gemmlab.measure.records import series
from gemmlab.model import schedule as dealing
from gemmlab.model.in_tiles import in_tiles
from gemmlab.model.quantization import quantization
from gemmlab.plots import Span

H200 = device("h200")
LARGE = Gemm(4096, 4096, 4096)


def recorded(*names):
    """Square products in FP32 by kernels with their own tiles."""
    return [
        m
        for m in records.load("h200")
        if m.kernel in names
        and m.problem.m == m.problem.n == m.problem.k
        and (m.problem.dtype, m.problem.layout) == ("float32", "nn")
        and m.tiling == kernels.get(m.kernel).default
    ]


def expected(measurements):
    return [
        predict(m.problem, H200, kernels.get(m.kernel), m.tiling)
        for m in measurements
        if kernels.get(m.kernel).work
    ]


@cuda.jit
def column(x):
    tile = cuda.shared.array((32, 32), np.float32)
    tile[cuda.threadIdx.x, 0] = x[cuda.threadIdx.x]


def cover():
    figure, (ax,) = plots.figure(4, 4)
    plots.cover(ax, quantization(Gemm(256, 257, 64), H200, (128, 128), 1))
    plots.style.title(ax, "One column too many")
    plots.provenance(ax, "computed")
    return figure


def sawtooth():
    figure, (ax,) = plots.figure(8, 3.6, bottom=0.28)
    measured = series(kernels.pipelined, "n", m=1408, k=4096)
    problems = Gemms(1408, range(64, 12_000, 8), 4096)
    found = in_tiles(problems, H200, (128, 256), per_sm=1)
    predicted = {"predicted": (problems.n, found.seconds)}
    plots.sawtooth(ax, predicted, {"recorded": plots.along_n(measured)})
    plots.style.title(ax, "A product that grows")
    plots.provenance(ax, measured[0].source)
    return figure


def waves():
    figure, (ax,) = plots.figure(5, 3.6, bottom=0.36)
    plots.waves(ax, quantization(Gemm(2304, 1544, 64), device("a100_80gb"), (256, 128), 1))
    plots.style.title(ax, "One column of tiles too many")
    plots.provenance(ax, "predicted")
    return figure


def access_map():
    figure, (left, right) = plots.figure(12, 5.6, columns=2)
    trace = simulate(column, 1, 32, np.zeros(32, np.float32), trace="tile[").trace
    for ax, space in ((left, "shared"), (right, "global")):
        plots.access_map(ax, next(access for access in trace if access.space == space))
    return figure


def alignment():
    figure, (ax,) = plots.figure(9, 2.4)
    plots.alignment(ax, [1.0, 1.25, -1.5], [2.0**-13] * 3, 2048.0, arch="sm_70")
    return figure


def bars():
    figure, (ax,) = plots.figure(6, 1.5)
    plots.bars(ax, {"tiles of 16×16": 17.5e-3, "tiles of 32×32": 17.4e-3}, "s")
    plots.style.title(ax, "time")
    plots.provenance(ax, "recorded")
    return figure


def beside():
    figure, (ax,) = plots.figure(7, 4)
    rungs = [m for k in kernels.LADDER for m in recorded(k.name) if m.problem == LARGE]
    rows = [
        plots.Row(m.kernel, m.tiling, p, m) for m, p in zip(rungs, expected(rungs), strict=True)
    ]
    plots.beside(ax, rows, 2, "speed")
    plots.provenance(ax, rungs[0].source)
    return figure


def counters():
    figure, (ax,) = plots.figure(8, 4)
    problem = Gemm(20, 30, 40)
    plots.counters(
        ax, predict(problem, H200, kernels.tiled), run(kernels.tiled, problem, "simulator")
    )
    plots.style.title(ax, "Counters of the tiled kernel")
    plots.provenance(ax, "predicted, and simulated")
    return figure


def fragment():
    figure, axes = plots.figure(10.5, 5, columns=3)
    for ax, name in zip(axes, "ABC", strict=True):
        plots.fragment(ax, layout("m16n8k16", name).table, name, lane=5, source="predicted")
    return figure


def ladder():
    figure, (ax,) = plots.figure(9.5, 5)
    rungs = [m for k in kernels.LADDER for m in recorded(k.name) if m.problem == LARGE]
    (library,) = (m for m in recorded("cublas") if m.problem == LARGE)
    plots.ladder(ax, rungs, library, H200.peak_of("float32"), expected(rungs))
    plots.style.title(ax, "The ladder")
    plots.provenance(ax, library.source)
    return figure


def lane_map():
    figure, (ax,) = plots.figure(6, 2)
    plots.lane_map(ax, np.arange(32).reshape(16, 2).T, "lanes of a warp", marked=5)
    plots.provenance(ax, "computed")
    return figure


def pieces():
    figure, axes = plots.figure(9, 4.6, columns=2, bottom=0.17)
    rows, each = np.arange(16)[:, None], np.arange(8)
    for ax, placed in zip(axes, (in_rows, swizzled), strict=True):
        marked = [(row, 2) for row in range(8)]
        plots.pieces(ax, placed(64)(rows, each), placed.__name__, marked)
    plots.provenance(axes[1], "predicted")
    return figure


def residual():
    figure, (ax,) = plots.figure(7, 4)
    measured = recorded("naive", "coalesced", "tiled")
    plots.residual(ax, list(zip(measured, expected(measured), strict=True)))
    plots.provenance(ax, measured[0].source)
    return figure


def resources():
    figure, (ax,) = plots.figure(6, 3)
    plots.resources(ax, predict(LARGE, H200, kernels.tiled))
    plots.provenance(ax, "predicted")
    return figure


def roofline():
    figure, (ax,) = plots.figure()
    plots.roofline(ax, device("v100"), "float16")
    shapes = ((8192, 128, 8192), (8192, 8192, 8192))
    items = [predict(Gemm(*shape, dtype="float16"), "v100") for shape in shapes]
    plots.points(ax, items, names=("thin", "cube"))
    plots.style.title(ax, "Two products on a V100")
    plots.provenance(ax, "predicted")
    return figure


def memories():
    figure, (ax,) = plots.figure()
    plots.roofline(ax, H200, "float32", levels=("dram", "l2", "shared"))
    (measured,) = (m for m in recorded("tiled") if m.problem == LARGE)
    plots.memories(ax, predict(LARGE, H200, kernels.tiled), H200, measured)
    plots.provenance(ax, measured.source)
    return figure


def schedule():
    figure, (ax,) = plots.figure(8, 2.6, bottom=0.36)
    placed = dealing.schedule(dealing.stream_k(5, 8, blocks=4), sms=4)
    plots.schedule(ax, placed, 4)
    plots.style.title(ax, "Equal shares of five tiles")
    plots.provenance(ax, "predicted")
    return figure


def splits():
    figure, (ax,) = plots.figure(8, 3.8, bottom=0.3)
    problem = Gemm(1024, 1024, 8192)
    runs = [m for m in records.load("h200", "split_k") if m.problem == problem]
    seen = {m.tiling.split: m.seconds for m in runs}
    bound = [float(in_tiles(problem, H200, (128, 256), s).seconds) for s in range(1, 17)]
    marks = {"recorded": (sorted(seen), [seen[s] for s in sorted(seen)])}
    plots.splits(ax, {"bound": (range(1, 17), bound)}, marks, library=seen[4])
    plots.style.title(ax, "split_k, over the parts of k")
    plots.provenance(ax, runs[0].source)
    return figure


def sizes():
    figure, (ax,) = plots.figure(8, 4.8)
    measured = recorded("naive", "coalesced", "tiled", "cublas")
    peak = H200.peak_of("float32")
    plots.sizes(ax, measured, expected(measured), limits={"FP32 peak": peak})
    plots.style.title(ax, "Three rungs and the library")
    plots.provenance(ax, f"{measured[0].source}; lines: predicted")
    return figure


def slots():
    figure, (ax,) = plots.figure(4.6, 4.3, left=1.4 / 4.6)
    used = {"fma": 0.353, "integer": 0.23, "uniform": 0.01, "shared": 0.09, "branch": 0.02}
    plots.slots(ax, used, {"scoreboard": 0.13, "stall": 0.1, "pipe": 0.004})
    plots.style.title(ax, "register_tiled: a step along k")
    plots.provenance(ax, "simulated from compiled code")
    return figure


def speedups():
    figure, axes = plots.figure(10.5, 4.6, columns=2)
    found = fragment_uses("h200")
    for ax, over in zip(axes, ("shared", "shared, one by one"), strict=True):
        plots.speedups(ax, found.rows, over)
        plots.provenance(ax, found.source)
    return figure


def thread_tiles():
    figure, (ax,) = plots.figure(6, 4)
    tilings = [t for t in kernels.register_tiled.tilings if t.thread]
    predicted = [predict(LARGE, H200, kernels.register_tiled, t) for t in tilings]
    measured = [m for m in records.load("h200") if m.kernel == "register_tiled"]
    plots.thread_tiles(ax, [m for m in measured if m.problem == LARGE], predicted, False)
    plots.provenance(ax, measured[0].source)
    return figure


def tiles():
    figure, (left, right) = plots.figure(8.6, 4.4, columns=2)
    plots.tiles(left, Gemm(64, 64, 64), Tiling.square(16), block=(2, 1), step=1)
    plots.tiles(right, Gemm(56, 72, 40), Tiling.square(16), block=(4, 3), step=2)
    plots.style.title(left, "64×64×64: tiles of 16 fit")
    plots.style.title(right, "56×72×40: ragged edges")
    return figure


def inside():
    figure, (ax,) = plots.figure(9.5, 2.6, top=0.8, bottom=0.3, left=0.1)
    launch = marks().launch("warp_specialised")
    plots.inside(ax, marks().of(launch.kernel), rounds=launch.rounds)
    plots.style.title(ax, f"{launch.kernel}, {launch.problem}: two tiles of C")
    plots.provenance(ax, marks().source)
    return figure


def timeline():
    figure, (ax,) = plots.figure(8, 2.6)
    copies = [Span("copy", 0, 600), Span("wait", 600, 1000), Span("copy", 1000, 1600)]
    fmas = [Span("wait", 0, 600), Span("multiply", 600, 1000), Span("wait", 1000, 1600)]
    plots.timeline(ax, {"copies": copies, "FMA units": [*fmas, Span("multiply", 1600, 2000)]})
    plots.style.title(ax, "One tile after the other")
    plots.provenance(ax, "predicted")
    return figure


def warps():
    figure, (ax,) = plots.figure(5, 4.3)
    kinds = np.full((4, 64), -1)
    kinds[0, :40], kinds[1, 40:60:2], kinds[2, 1] = Kind.FMA, Kind.SHARED, Kind.INTEGER
    reasons = np.where(kinds < 0, int(Reason.SCOREBOARD), -1)
    plots.warps(ax, kinds, reasons, (0, 4, 8, 12), 128, (1, 40))
    plots.style.title(ax, "warps of one scheduler")
    plots.provenance(ax, "simulated from compiled code")
    return figure


DRAWINGS = {
    made.__name__: made
    for made in (
        *(access_map, alignment, bars, beside, counters, cover, fragment, inside),
        *(ladder, lane_map, memories, pieces, residual, resources, roofline, sawtooth, schedule),
        *(sizes, slots, speedups, splits, thread_tiles, tiles, timeline, warps, waves),
    )
}

"""Write what README.md takes from the records: tables of ladders and of `matmul`, and a picture.

Run it as ``python -m benchmarks.readme``. Rungs that are not recorded yet have no bar in the
picture. The picture's alternative text is in its file and in the pages that show it. Predictions
take minutes, and stand in a file of their own: ``python -m benchmarks.forecast.ladder readme FILE``
writes it, and with ``--since`` in place of the file one beside it. The later one counts.
"""

import re
import statistics
from functools import cache
from typing import NamedTuple

from benchmarks import ROOT
from benchmarks.forecast.written import first_and_since
from gemmlab import Gemm, Measurement, device, kernels, plots, predict, records
from gemmlab.measure.beside import BesideTorch, beside_torch
from gemmlab.plots import si
from gemmlab.plots.ladder import Speed
from gemmlab.plots.shared.figures import DENSITY, Figure, png

PICTURE = ROOT / "book" / "images" / "ladder.png"
DEVICE, N = "h200", 4096
BESIDE = "h100_sxm"  # where `matmul` was measured beside PyTorch
PREDICTED = "readme_predicted"


class Ladder(NamedTuple):
    """A table of README.md: its mark there, its kernels, and the product that they are shown at."""

    mark: str
    rungs: tuple[kernels.Kernel, ...]
    problem: Gemm


SIMT = Ladder("ladder", kernels.LADDER, Gemm(N, N, N))
LADDERS = (
    SIMT,
    Ladder("split-K", (kernels.pipelined, *kernels.SPLIT_K), Gemm(1024, 1024, 8192)),
    Ladder(
        "Tensor Cores",
        (*kernels.TENSOR_CORE, *kernels.TENSOR_CORE_TMA, *kernels.HOPPER),
        Gemm(8192, 8192, 8192, dtype="float16", out_dtype="float32"),
    ),
    Ladder(
        "split-K on Tensor Cores",
        (kernels.mma_pipelined, *kernels.TENSOR_CORE_SPLIT_K, *kernels.HOPPER_SPLIT_K),
        Gemm(512, 512, 16384, dtype="float16", out_dtype="float32"),
    ),
    Ladder("TCEC", kernels.TCEC, Gemm(8192, 8192, 8192)),
)


def recorded(kernel: kernels.Kernel, problem: Gemm) -> Measurement | None:
    """The measurement of a kernel with its own tiling; None where there is none."""
    try:
        return records.find(kernel, problem, kernel.choose(None, problem, DEVICE), DEVICE)
    except LookupError:
        return None


def predicted(kernel: kernels.Kernel, problem: Gemm) -> float | None:
    """What a rung's compiled code promises [FLOP/s]; None where it was not predicted."""
    key = kernel.name, str(problem), str(kernel.choose(None, problem, DEVICE))
    seconds = predictions().get(key)
    return problem.flops / seconds if seconds else None


@cache
def predictions() -> dict[tuple[str, str, str], float]:
    """The times that are predicted [s], by kernel, problem and tiling: by the last that did."""
    rows = (row for made in first_and_since(DEVICE, PREDICTED) for row in made.rows)
    return {(row["kernel"], row["problem"], row["tiling"]): row["seconds"] for row in rows}


def source(kernel: kernels.Kernel) -> str:
    """The file of a kernel, from the root of the project."""
    return f"{kernel.build.__module__.replace('.', '/')}.py"


def table(ladder: Ladder) -> str:
    """The rungs at one product, as Markdown: rates, what was expected of them, and fractions."""
    problem, gpu = ladder.problem, device(DEVICE)
    yardstick = records.find(kernels.REFERENCE, problem, None, DEVICE)
    peak = gpu.peak_of(problem.dtype)
    lines = [
        "| rung | idea | recorded | predicted | bound | of cuBLAS | of the peak |",
        "|---|---|--:|--:|--:|--:|--:|",
    ]
    for number, kernel in enumerate(ladder.rungs, 1):
        name = f"{number} [{kernel.name}]({source(kernel)})"
        lines.append(f"| {name} | {kernel.idea} | {_rates(kernel, problem, yardstick, peak)} |")
    rate = yardstick.flops_per_second
    lines.append(
        f"| | cuBLAS: {kernels.REFERENCE.idea} | {rate / 1e12:.2f} TFLOP/s | | | "
        f"| {rate / peak:.1%} |"
    )
    note = f"{problem}, {yardstick.source}, peak {si(peak, 'FLOP/s')}, L2 flushed before each run."
    return "\n".join([*lines, "", note])


def _rates(kernel: kernels.Kernel, problem: Gemm, yardstick: Measurement, peak: float) -> str:
    """What was measured of a rung and what was expected, as cells of a row."""
    seen, speed = recorded(kernel, problem), predicted(kernel, problem)
    reached, of_library, of_peak = "not yet", "", ""
    if seen is not None:
        rate = seen.flops_per_second
        reached = f"{rate / 1e12:.2f} TFLOP/s"
        of_library, of_peak = f"{rate / yardstick.flops_per_second:.1%}", f"{rate / peak:.1%}"
    promised = f"{speed / 1e12:.2f}" if speed else "not yet"
    bound = predict(problem, DEVICE, kernel).flops_per_second / 1e12
    return f"{reached} | {promised} | {bound:.2f} | {of_library} | {of_peak}"


def matmul_table() -> str:
    """What `gemmlab.matmul` takes beside PyTorch's own product, as Markdown."""
    try:
        times = beside_torch(BESIDE)
    except LookupError:
        return f"What it takes on an {device(BESIDE).title} is not recorded yet."
    lines = [
        "| product | by | in a loop | of PyTorch's speed | a call alone | error, PyTorch's |",
        "|---|---|--:|--:|--:|--:|",
    ]
    for x in times.products:
        if x.name in SHOWN:
            rate, alone = x.flops / x.loop / 1e12, x.their_single / x.single
            lines.append(
                f"| {x.name} | {x.kernel} | {rate:.1f} TFLOP/s | {x.ratio:.2f} × "
                f"| {alone:.2f} × | {x.error:.1e}, {x.their_error:.1e} |"
            )
    told = "PyTorch in FP32, TF32 off, in the same run; errors by norm, of normal numbers"
    every = [drawn_sizes(times, how, what) for how, what in DRAWN.items()]
    return "\n".join(
        [*lines, "", f"{times.source}; {told}.", "", *every, handed(times), energy(times)]
    )


# Of the products that were chosen, for a page; the record has all, and those of no other kind.
SHOWN = {
    *(f"{n}×{n}×{n}" for n in (512, 1024, 1536, 2048, 4096, 8192)),
    "4096×11008×4096", "333×7777×5001", "512×512×65536", "16×4096×4096", "65536×64×64",
    "256×256×65536", "16 of 1024×1024×1024", "64 of 512×512×512", "256 of 128×128×128",
}  # fmt: skip
DRAWN = {"drawn": "Of 40 products whose sizes were drawn", "drawn anew": "Of 40 drawn anew"}


def drawn_sizes(times: BesideTorch, how: str, what: str) -> str:
    """What it takes for sizes that were drawn, in a sentence."""
    products = [x for x in times.products if x.how == how]
    own = [x.ratio for x in products if x.kernel != "library"]
    faster = f", at {min(own):.2f} to {max(own):.2f} × PyTorch's speed in a loop" if own else ""
    mean = statistics.geometric_mean(x.ratio for x in products)
    return (
        f"{what}, 1 to 65,536 each, {len(own)} go to the Tensor Cores{faster}; all together, by "
        f"geometric mean, run at {mean:.2f} ×."
    )


def handed(times: BesideTorch) -> str:
    """Say how much longer a call takes that PyTorch multiplies."""
    found = [x for x in times.products if x.kernel == "library"]
    loops = [(x.loop - x.their_loop) * 1e6 for x in found]
    alone = [(x.single - x.their_single) * 1e6 for x in found]
    least = min(x.their_loop for x in found) * 1e6
    worst = max(x.error / x.their_error for x in times.products if x.error)
    return (
        f"A call that PyTorch multiplies takes {statistics.median(loops):.1f} µs longer than its "
        f"own in a loop, {max(loops):.1f} at most; alone {statistics.median(alone):.1f} µs, "
        f"{max(alone):.1f} at most, where PyTorch's shortest call takes {least:.1f} µs. The error "
        f"by norm is at most {worst:.2f} × PyTorch's, of all {len(times.products)}."
    )


def energy(times: BesideTorch) -> str:
    """Joules of products, in a sentence."""
    told = "; ".join(
        f"{x.n}³ {x.joules:.3g} J, PyTorch {x.their_joules:.3g} J" for x in times.energy
    )
    return f"Energy of a product in loops of a second, by the GPU's counter: {told}."


def up_to_date(readme: str) -> str:
    """`readme` with its tables and the words of its picture as the records have them."""
    tables = {ladder.mark: table(ladder) for ladder in LADDERS} | {"matmul": matmul_table()}
    for mark, text in tables.items():
        begin, end = f"<!-- {mark}: written by benchmarks/readme.py -->", f"<!-- end of {mark} -->"
        before, rest = readme.split(begin)
        _, after = rest.split(end)
        readme = f"{before}{begin}\n{text}\n{end}{after}"
    path = PICTURE.relative_to(ROOT).as_posix()
    shown = f"![{plots.alt(picture())}]({path})"
    return re.sub(rf"!\[[^\]]*\]\({re.escape(path)}\)", lambda _: shown, readme)


def picture() -> Figure:
    """The recorded speed of each rung, its prediction, cuBLAS and the peak."""
    gpu = device(DEVICE)
    rungs = [m for kernel in SIMT.rungs if (m := recorded(kernel, SIMT.problem)) is not None]
    speeds = {m.kernel: predicted(kernels.get(m.kernel), SIMT.problem) for m in rungs}
    expected = [Speed(kernel, speed) for kernel, speed in speeds.items() if speed]
    yardstick = records.find(kernels.REFERENCE, SIMT.problem, None, DEVICE)
    figure, (ax,) = plots.figure(width=9, height=1.9 + 0.45 * len(rungs))
    figure.subplots_adjust(left=0.155)
    plots.ladder(ax, rungs, yardstick, gpu.peak_of(SIMT.problem.dtype), expected)
    plots.style.title(ax, f"The ladder, FP32, m = n = k = {N}")
    plots.provenance(ax, yardstick.source)
    return figure


def narrow_picture() -> Figure:
    """The same speeds for a phone: bars with their values, the library's last."""
    speeds = {
        seen.kernel: seen.flops_per_second
        for kernel in (*SIMT.rungs, kernels.REFERENCE)
        if (seen := recorded(kernel, SIMT.problem)) is not None
    }
    figure, (ax,) = plots.figure(width=3.2, height=3.4, left=0.33, right=0.99)
    plots.bars(ax, speeds, "FLOP/s")
    ax.set_xlim(0, 1.6 * max(speeds.values()))  # room for a value, which else widens the picture
    plots.style.title(ax, f"The ladder, FP32, {N}³")
    plots.provenance(ax, records.find(kernels.REFERENCE, SIMT.problem, None, DEVICE).source)
    return figure


if __name__ == "__main__":
    readme = ROOT / "README.md"
    readme.write_text(up_to_date(readme.read_text("utf-8")), "utf-8")
    PICTURE.write_bytes(png(picture(), DENSITY))

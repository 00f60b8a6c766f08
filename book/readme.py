"""Write what README.md takes from the records: the table of the ladder and its picture.

Run it as ``python book/readme.py``. Rungs that are not recorded yet have no bar in the picture. The
picture's alternative text is in its file and in the pages that show it.
"""

from __future__ import annotations

import re
from pathlib import Path

from gemmlab import Gemm, Measurement, device, kernels, plots, predict, records
from gemmlab.plots import si
from gemmlab.plots.figures import DENSITY, Figure, png

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "book" / "images" / "ladder.png"
BEGIN, END = "<!-- ladder: written by book/readme.py -->", "<!-- end of ladder -->"
DEVICE, N = "h200", 4096
PROBLEM = Gemm(N, N, N)


def recorded(kernel: kernels.Kernel) -> Measurement | None:
    """The measurement of a kernel with its own tiling; None where there is none."""
    try:
        return records.find(kernel, PROBLEM, kernel.default, DEVICE)
    except LookupError:
        return None


def source(kernel: kernels.Kernel) -> str:
    """The file of a kernel, from the root of the project."""
    return f"{kernel.build.__module__.replace('.', '/')}.py"


def table() -> str:
    """The ladder at one size, as Markdown: rates, and fractions of cuBLAS and of the peak."""
    yardstick = records.find(kernels.REFERENCE, PROBLEM, None, DEVICE)
    gpu = device(DEVICE)
    peak = gpu.peak_of(PROBLEM.dtype)
    lines = [
        f"| rung | idea | recorded at n = {N} | predicted | of cuBLAS | of the peak |",
        "|---|---|--:|--:|--:|--:|",
    ]
    for number, kernel in enumerate(kernels.LADDER, 1):
        name = f"{number} [{kernel.name}]({source(kernel)})"
        expected = predict(PROBLEM, gpu, kernel).flops_per_second / 1e12
        lines.append(f"| {name} | {kernel.idea} | {_rates(kernel, expected, yardstick, peak)} |")
    rate = yardstick.flops_per_second
    lines.append(
        f"| | cuBLAS: {kernels.REFERENCE.idea} | {rate / 1e12:.2f} TFLOP/s | | "
        f"| {rate / peak:.1%} |"
    )
    note = f"FP32, {yardstick.source}, peak {si(peak, 'FLOP/s')}, L2 flushed before each run."
    return "\n".join([*lines, "", note])


def _rates(kernel: kernels.Kernel, expected: float, yardstick: Measurement, peak: float) -> str:
    seen = recorded(kernel)
    if seen is None:
        return f"not yet | {expected:.2f} | | "
    rate = seen.flops_per_second
    return (
        f"{rate / 1e12:.2f} TFLOP/s | {expected:.2f} | {yardstick.seconds / seen.seconds:.1%} "
        f"| {rate / peak:.1%}"
    )


def up_to_date(readme: str) -> str:
    """`readme` with its table of the ladder and the words of its picture as the records have it."""
    before, rest = readme.split(BEGIN)
    _, after = rest.split(END)
    path = PICTURE.relative_to(ROOT).as_posix()
    shown = f"![{plots.alt(picture())}]({path})"
    before = re.sub(rf"!\[[^\]]*\]\({re.escape(path)}\)", lambda _: shown, before)
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


def picture() -> Figure:
    """The recorded speed of each rung, on its prediction, cuBLAS and the peak."""
    gpu = device(DEVICE)
    rungs = [m for m in map(recorded, kernels.LADDER) if m is not None]
    expected = [predict(PROBLEM, gpu, kernels.get(m.kernel), m.tiling) for m in rungs]
    yardstick = records.find(kernels.REFERENCE, PROBLEM, None, DEVICE)
    figure, (ax,) = plots.figure(width=9, height=1.9 + 0.45 * len(rungs))
    figure.subplots_adjust(left=0.155)
    plots.ladder(ax, rungs, yardstick, gpu.peak_of(PROBLEM.dtype), expected)
    plots.style.title(ax, f"The ladder, FP32, m = n = k = {N}")
    plots.provenance(ax, yardstick.source)
    return figure


if __name__ == "__main__":
    readme = ROOT / "README.md"
    readme.write_text(up_to_date(readme.read_text("utf-8")), "utf-8")
    PICTURE.write_bytes(png(picture(), DENSITY))

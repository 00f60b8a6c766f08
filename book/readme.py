"""Write what README.md takes from the records: the table of the ladder and its picture.

Run it as ``python book/readme.py``.
"""

from __future__ import annotations

from pathlib import Path

from gemmlab import Gemm, kernels, predict, records

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "book" / "images" / "ladder.png"
BEGIN, END = "<!-- ladder: written by book/readme.py -->", "<!-- end of ladder -->"
DEVICE, N = "h200", 4096


def table() -> str:
    """The ladder at one size, as Markdown: recorded and predicted rates, fraction of cuBLAS."""
    problem = Gemm(N, N, N)
    yardstick = records.find(kernels.REFERENCE, problem, None, DEVICE)
    lines = [
        f"| rung | idea | recorded at n = {N} | predicted | of cuBLAS |",
        "|---|---|--:|--:|--:|",
    ]
    for number, kernel in enumerate(kernels.LADDER, 1):
        seen = records.find(kernel, problem, kernel.default, DEVICE)
        expected = predict(problem, DEVICE, kernel)
        share = yardstick.seconds / seen.seconds
        lines.append(
            f"| {number} [{kernel.name}](gemmlab/kernels/{kernel.name}.py) | {kernel.idea} "
            f"| {seen.flops_per_second / 1e12:.2f} TFLOP/s "
            f"| {expected.flops_per_second / 1e12:.2f} | {share:.1%} |"
        )
    rate = yardstick.flops_per_second / 1e12
    lines.append(f"| | cuBLAS: {kernels.REFERENCE.idea} | {rate:.2f} TFLOP/s | | |")
    return "\n".join([*lines, "", f"FP32, {yardstick.source}, L2 flushed before each run."])


def with_table(readme: str) -> str:
    """`readme` with its table of the ladder brought up to date."""
    before, rest = readme.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


def draw(path: Path) -> None:
    """The recorded rates of the ladder over size, on their predictions."""
    from gemmlab import plots

    square = [
        m
        for kernel in (*kernels.LADDER, kernels.REFERENCE)
        for m in records.load(DEVICE, kernel)
        if m.problem.m == m.problem.n == m.problem.k and m.tiling == kernel.default
    ]
    predicted = [
        predict(m.problem, DEVICE, kernels.get(m.kernel), m.tiling)
        for m in square
        if m.kernel != kernels.REFERENCE.name
    ]
    figure, (ax,) = plots.figure(width=9, height=4.5)
    plots.sizes(ax, square, predicted)
    plots.provenance(ax, f"dots: {square[0].source}; lines: predicted, nothing fitted")
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    readme = ROOT / "README.md"
    readme.write_text(with_table(readme.read_text("utf-8")), "utf-8")
    draw(PICTURE)

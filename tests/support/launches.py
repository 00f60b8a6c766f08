"""Operands, lines and hazards of kernels, as tests ask for them."""

import inspect

from gemmlab import simulate


def line_of(kernel, text):
    lines, first = inspect.getsourcelines(kernel)
    return first + next(i for i, line in enumerate(lines) if text in line)


def hazards(kernel, grid, block, *arguments, **options):
    return simulate(kernel, grid, block, *arguments, on_hazard="collect", **options).hazards


def lines(report):
    return {report.source.code(line): counts for line, counts in report.by_line.items()}


def hazards_of_a_block(kernel, *arguments, threads=32, **options):
    return hazards(kernel, 1, threads, *arguments, **options)

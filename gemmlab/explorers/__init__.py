"""Explorers: widgets that put the model's or a kernel's answer beside the controls.

Each is a class whose arguments are the first values of its controls; it shows itself as the last
expression of a cell.
"""

from gemmlab.explorers.coalescing import Coalescing
from gemmlab.explorers.kernel_lab import KernelLab
from gemmlab.explorers.roofline import Roofline

__all__ = ["Coalescing", "KernelLab", "Roofline"]

"""Explorers: widgets that put the model's or a kernel's answer beside the controls.

Each is a class whose arguments are the first values of its controls; it shows itself as the last
expression of a cell.
"""

from gemmlab.explorers.coalescing import Coalescing
from gemmlab.explorers.dot_error import DotError
from gemmlab.explorers.fragments import Fragments
from gemmlab.explorers.kernel_lab import KernelLab
from gemmlab.explorers.memories import Memories
from gemmlab.explorers.quantization import Quantization
from gemmlab.explorers.roofline import Roofline
from gemmlab.explorers.rounding import Rounding
from gemmlab.explorers.split_k import SplitK
from gemmlab.explorers.stage_timeline import StageTimeline
from gemmlab.explorers.stages import Stages
from gemmlab.explorers.swizzle import Swizzle
from gemmlab.explorers.tcec import Tcec
from gemmlab.explorers.thread_tiles import ThreadTiles
from gemmlab.explorers.timeline import Timeline

__all__ = [
    "Coalescing",
    "DotError",
    "Fragments",
    "KernelLab",
    "Memories",
    "Quantization",
    "Roofline",
    "Rounding",
    "SplitK",
    "StageTimeline",
    "Stages",
    "Swizzle",
    "Tcec",
    "ThreadTiles",
    "Timeline",
]

"""The names that mean something in kernels, and those of number types."""

from gemmlab.simt.numbers.types import TYPES
from gemmlab.simt.syntax.names import stand_in_names

NAMES = TYPES | stand_in_names()
globals().update(NAMES)

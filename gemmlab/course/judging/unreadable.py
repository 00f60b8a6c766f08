"""An array that has a shape and a dtype, and whose elements cannot be read."""

from __future__ import annotations

import ctypes
import mmap
from dataclasses import dataclass

import numpy as np

from gemmlab.course.judging.apart import copies

_NO_ACCESS = 0  # PROT_NONE of mprotect


@dataclass(frozen=True)
class Unreadable:
    """The place of an array: where a process is its own, whoever reads an element of it ends it.

    Elsewhere it is an array of NaN.
    """

    shape: tuple[int, ...]
    dtype: np.dtype

    def array(self) -> np.ndarray:
        """The array, in memory to which this process has no access."""
        size = int(np.prod(self.shape)) * self.dtype.itemsize
        if not copies():
            return np.full(self.shape, np.nan, self.dtype)
        memory = mmap.mmap(-1, size)
        array = np.frombuffer(memory, self.dtype).reshape(self.shape)
        protect = ctypes.CDLL(None, use_errno=True).mprotect
        if protect(ctypes.c_void_p(array.ctypes.data), ctypes.c_size_t(size), _NO_ACCESS):
            raise OSError(ctypes.get_errno(), "mprotect failed")
        return array

"""The decorator of the inner loop: Numba compiles it where it is installed, else Python runs it."""

from __future__ import annotations

try:
    from numba import njit
except ImportError:

    def compiled(function):
        """Leave the function as it is."""
        return function
else:
    compiled = njit(cache=True)

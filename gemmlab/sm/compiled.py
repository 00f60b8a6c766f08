"""The decorators of the inner loop: Numba compiles it where it is installed, else Python runs it.

To compile takes many seconds, so the result is kept on disk. Numba knows a kept function by its own
file; but it contains the functions that it calls, which are in other files. A number of all
their texts, `VERSION`, tells whether they have changed.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

FILES = sorted(Path(__file__).parent.glob("*.py"))
VERSION = hashlib.sha256(b"".join(file.read_bytes() for file in FILES)).hexdigest()

try:
    from numba import njit
except ImportError:

    def compiled(function):
        """Leave the function as it is."""
        return function

    kept = compiled
else:
    compiled = njit
    kept = njit(cache=True)

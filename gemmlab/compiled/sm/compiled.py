"""Numba compiles the inner loop where it is installed, else Python runs it.

To compile takes seconds, so the result is kept on disk. Numba knows a kept function by its own
file; but it contains the functions that it calls, which are in other files. A number made of all
their texts, `VERSION`, tells whether one has changed.
"""

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

    kept, COMPILED = compiled, False
else:
    COMPILED = True
    # No array is made or freed in the loop. To count references to them all the same takes 30 times
    # as long as the loop itself.
    # Other threads go on meanwhile: a widget's.
    OPTIONS = {"_nrt": False, "no_cfunc_wrapper": True, "nogil": True}
    # What only the loop calls needs no way in from Python, which takes two thirds of compiling.
    compiled = njit(**OPTIONS, no_cpython_wrapper=True, forceinline=True)
    kept = njit(**OPTIONS, cache=True)

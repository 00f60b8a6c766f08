"""The program that a profiler or a sanitizer watches: the launches of one piece, nothing else.

python -m benchmarks.hardware.launch CHECK PIECE
"""

import sys

from benchmarks.hardware.checks import CHECKS

if __name__ == "__main__":
    check, piece = sys.argv[1:]
    CHECKS[check].launch(piece)

"""The program that a profiler or a sanitizer watches: the launches of one piece, nothing else.

python -m tests.hardware.launch CHECK PIECE
"""

import sys

from tests.hardware.checks import CHECKS

if __name__ == "__main__":
    check, piece = sys.argv[1:]
    CHECKS[check].launch(piece)

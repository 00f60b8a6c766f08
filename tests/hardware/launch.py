"""What runs under a profiler or a sanitizer: the launches of one piece, and nothing else.

python -m tests.hardware.launch CHECK PIECE
"""

import sys

from tests.hardware.checks import CHECKS

if __name__ == "__main__":
    check, piece = sys.argv[1:]
    CHECKS[check].launch(piece)

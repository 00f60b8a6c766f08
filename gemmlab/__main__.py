"""``python -m gemmlab``: the command line."""

import sys

from gemmlab.cli import main

if __name__ == "__main__":
    sys.exit(main())

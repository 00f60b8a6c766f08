"""``python -m gemmlab``, and the command ``gemmlab``."""

import sys


def main() -> int:
    """Run the command line; Ctrl-C is one line, also while modules are imported."""
    try:
        from gemmlab import cli

        return cli.main()
    except KeyboardInterrupt:
        print("gemmlab: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())

"""Write the lock files anew from pyproject.toml: `python requirements/lock.py [--upgrade]`.

One resolution for every extra, then one file for each set that run.py installs, so that the files
agree; each serves Linux, macOS and Windows, and every Python that pyproject.toml allows. Needs uv.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
NAMES = (
    "lab",
    "forecast",
    "forecast-mlir",
    "gpu",
    "gpu-mlir",
    "book",
    "pdf",
    "live",
    "test",
    "browser",
    "build",
    "uv",
)
SETS = {name: [name] for name in NAMES}
BEFORE = ("build", "uv")  # what installs the others needs none of what gemmlab itself does


def resolve(extras: list[str], constraints: list[Path], out: Path) -> None:
    """Resolve the project with these extras into `out`, within the constraints.

    Each package has the hashes of its files: another file under its name is not installed.
    """
    command = ["uv", "pip", "compile", "pyproject.toml", "--universal", "--python-version", "3.11"]
    command += [part for extra in extras for part in ("--extra", extra)]
    command += [part for path in constraints for part in ("--constraint", str(path))]
    command += ["--no-annotate", "--no-emit-index-url", "--no-emit-find-links", "--quiet"]
    command += ["--generate-hashes"]
    command += ["--no-emit-package", "numpy"] if out.stem in BEFORE else []
    command += [
        "--custom-compile-command",
        "python requirements/lock.py",
        "--output-file",
        str(out),
    ]
    subprocess.run(command, cwd=HERE.parent, check=True, stdout=subprocess.DEVNULL)


def main() -> None:
    """Resolve everything once, then each set within that; keep the pins unless upgrading."""
    with tempfile.TemporaryDirectory() as scratch:
        everything = Path(scratch) / "everything.txt"
        old = [] if "--upgrade" in sys.argv[1:] else sorted(HERE.glob("*.txt"))
        extras = [extra for extras in SETS.values() for extra in extras]
        resolve(extras, old, everything)
        for name, extras in SETS.items():
            resolve(extras, [everything], HERE / f"{name}.txt")


if __name__ == "__main__":
    main()

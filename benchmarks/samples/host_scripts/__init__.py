"""Host scripts: whole programs in the style of Numba's manual."""

import re
from pathlib import Path

SCRIPTS = sorted(path for path in Path(__file__).parent.glob("*.py") if path.stem != "__init__")


def with_gemmlab(text):
    """A program with its imports of Numba changed to the simulated GPU's, and nothing else."""
    text = re.sub(r"^from numba\.cuda\b", "from gemmlab.simt.cuda", text, flags=re.M)
    return re.sub(r"^from numba import (.*)$", _imports, text, flags=re.M)


def _imports(line):
    names = [name.strip() for name in line[1].split(",")]
    others = [name for name in names if name != "cuda"]
    lines = ["from gemmlab.simt import cuda"] if "cuda" in names else []
    return "\n".join(lines + [f"from gemmlab.simt.cuda import {name}" for name in others])

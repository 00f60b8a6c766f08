"""Host scripts: whole programs in the style of Numba's manual."""

import re
from functools import partial
from pathlib import Path

SCRIPTS = sorted(path for path in Path(__file__).parent.glob("*.py") if path.stem != "__init__")


def with_gemmlab(text):
    """A program with its imports of Numba changed to the simulated GPU's, and nothing else."""
    text = re.sub(r"^from numba\.cuda\b", "from gemmlab.simt.cuda", text, flags=re.M)
    return re.sub(r"^from numba import (.*)$", _imports, text, flags=re.M)


def with_mlir(text):
    """A program with its imports of Numba changed to those of numba-cuda-mlir."""
    text = re.sub(
        r"^import numba\b(?!\.cuda).*$", r"\g<0>\nimport numba_cuda_mlir", text, flags=re.M
    )
    text = re.sub(r"\bnumba\.cuda\b", "numba_cuda_mlir.cuda", text)
    change = partial(_imports, package="numba_cuda_mlir", kept=OF_THE_HOST)
    return re.sub(r"^from numba import (.*)$", change, text, flags=re.M)


OF_THE_HOST = {"jit", "njit", "prange", "vectorize", "guvectorize"}  # Numba's own, without a GPU


def _imports(line, package="gemmlab.simt", kept=frozenset()):
    names = [name.strip() for name in line[1].split(",")]
    others = [name for name in names if name != "cuda" and name not in kept]
    lines = [f"from {package} import cuda"] if "cuda" in names else []
    lines += [f"from numba import {name}" for name in names if name in kept]
    return "\n".join(lines + [f"from {package}.cuda import {name}" for name in others])

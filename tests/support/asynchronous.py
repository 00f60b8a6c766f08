"""Kernels of asynchronous instructions, made of text, of which tests change a line."""

import linecache

import numpy as np

from gemmlab import cuda, instructions

N, STAGES = 16, 2  # columns of a product, and places of a ring


def made(source: str, name: str):
    """The kernel of a source, which tracebacks and the simulator can read."""
    file = f"<asynchronous {name}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    scope = dict(vars(instructions))
    scope |= {
        "cuda": cuda,
        "uint16": np.uint16,
        "uint32": np.uint32,
        "float16": np.float16,
        "float32": np.float32,
        "uint64": np.uint64,
    }
    scope |= {"STAGES": STAGES, "N": N, "HALF": N // 2}
    scope |= {"wgmma": instructions.WGMMA[N, "nt"], "wgmma_wait": instructions.WGMMA_WAIT[N]}
    exec(compile(source, file, "exec"), scope)
    return scope["kernel"]

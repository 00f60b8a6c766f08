"""What a compiler makes of every rung; neither a GPU nor the other compiler need be here.

python -m benchmarks.compilers.compiling numba-cuda-mlir FOLDER [RUNG ...]

A rung has a line in FOLDER/COMPILER.jsonl for each of its launches, and its code lies beside it.
A compiler that has compiled something before is faster: the first rung is compiled twice.
"""

import json
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.compilers import RUNGS
from gemmlab import kernels
from gemmlab.compiled.forecast.rung_listings import compiled_launch, usual
from gemmlab.compiled.sass import compiling
from gemmlab.here.driver import one_line, stamp
from gemmlab.kernels.kernel import Kernel, Launched

CAPABILITY = 9, 0


def compiled(kernel: Kernel, one: Launched, compiler: str) -> tuple[dict[str, Any], bytes]:
    """Compile one launch of a rung in its own tiling: return its line, and its cubin.

    A rung that the compiler refuses has a line with the reason, and no code.
    """
    problem, tiling = usual(kernel), kernel.choose(None)
    name = one.function(problem, tiling, CAPABILITY).__name__
    line = {"rung": kernel.name, "launch": name, "compiler": compiler}
    by_it = partial(compiling.cubin, compiler=compiler)
    start = time.perf_counter()
    try:
        cubin, taken = compiled_launch(one, kernel, problem, tiling, CAPABILITY, by_it)
    except Exception as error:
        return line | {"refused": one_line(error, 400)}, b""
    return line | taken._asdict() | {"seconds": round(time.perf_counter() - start, 3)}, cubin


def main(compiler: str, folder: Path, names: tuple[str, ...]) -> None:
    """Compile rungs, all where none is named, and write lines and cubins."""
    folder.mkdir(parents=True, exist_ok=True)
    rungs = [kernels.get(name) for name in names] or RUNGS
    compiled(rungs[0], rungs[0], compiler)
    stamped = stamp("python", compiler.replace("-", "_"), "ptxas")
    with (folder / f"{compiler}.jsonl").open("w", encoding="utf-8") as lines:
        lines.write(json.dumps(stamped) + "\n")
        for kernel in rungs:
            for one in kernel.launches:
                line, cubin = compiled(kernel, one, compiler)
                if cubin:
                    (folder / f"{kernel.name}.{line['launch']}.{compiler}.cubin").write_bytes(cubin)
                print(json.dumps(line), file=lines, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), tuple(sys.argv[3:]))

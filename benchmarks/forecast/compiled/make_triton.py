"""Compile kernels with Triton, which need be in this Python alone: no GPU, nothing of gemmlab.

python make_triton.py KERNELS.json FOLDER, where the file has, of each kernel, the formats of its
arguments, its constants and its options.
"""

import importlib.util
import json
import sys
from pathlib import Path

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

HERE = Path(__file__).parent / "triton"


def compiled(name: str, arguments: dict, constants: dict, options: dict, capability: int):
    """Compile the kernel of a file for arguments that begin at, or are, multiples of 16."""
    spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    kernel = getattr(module, name)
    places = [i for i, n in enumerate(kernel.arg_names) if arguments.get(n, "")[:1] == "*"]
    places += [i for i, n in enumerate(kernel.arg_names) if arguments.get(n) == "i32"]
    source = ASTSource(
        kernel,
        arguments | dict.fromkeys(constants, "constexpr"),
        constants,
        {(i,): [["tt.divisibility", 16]] for i in places},
    )
    return triton.compile(source, target=GPUTarget("cuda", capability, 32), options=options)


def main() -> None:
    asked, folder = json.loads(Path(sys.argv[1]).read_text("utf-8")), Path(sys.argv[2])
    made = {"triton": triton.__version__}
    for name, one in asked["kernels"].items():
        found = compiled(name, one["arguments"], one["constants"], one["options"], asked["for"])
        (folder / f"{name}.cubin").write_bytes(found.asm["cubin"])
        told = found.metadata
        made[name] = {
            "kernel": told.name, "shared_bytes": told.shared, "threads": 32 * told.num_warps
        }  # fmt: skip
    (folder / "triton.json").write_text(json.dumps(made), "utf-8")


if __name__ == "__main__":
    main()

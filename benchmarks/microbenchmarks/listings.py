"""Listings of many microbenchmarks at once: the tools take longer to start than to read a loop."""

import io
import json
import re
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from gemmlab.compiled.sass import compiling
from gemmlab.compiled.sass.listing import BYTES, Listing
from gemmlab.here import compilers
from gemmlab.here.driver import run

TARGET = "sm_90"
ENTRY = ".entry microbenchmark"


def listings(texts: Iterable[str]) -> dict[str, Listing]:
    """Compile PTX texts of one kernel each, as many in a module as may stand in one: those that
    name instructions of sm_90a stand apart, and those that have data of their own.
    """
    modules = defaultdict(dict)
    for text in texts:
        specific = any(name in text for name in compilers.SPECIFIC)
        modules[TARGET + "a" * specific, text.partition(".visible")[0]][text] = None
    found: dict[str, Listing] = {}
    for (target, _), some in modules.items():
        found |= _of_one_module(list(some), target)
    return found


def _of_one_module(texts: Sequence[str], target: str) -> dict[str, Listing]:
    from elftools.elf.elffile import ELFFile

    names = [f"microbenchmark_{i:04}" for i in range(len(texts))]
    cubin, taken = _assembled(_module(texts, names, target), target)
    _, functions = json.loads(compilers.disassembled(cubin, "-json"))
    elf, read = ELFFile(io.BytesIO(cubin)), {f["function-name"]: f for f in functions}
    found = {}
    for name, text in zip(names, texts, strict=True):
        code = elf.get_section_by_name(f".text.{name}").data()
        instructions = tuple(
            compiling.read_instruction(BYTES * i, item, code, name)
            for i, item in enumerate(read[name]["sass-instructions"])
        )
        found[text] = Listing(TARGET, instructions, **taken[name]._asdict())
    return found


def _module(texts: Sequence[str], names: Sequence[str], target: str) -> str:
    """One text of all kernels, each with a name of its own; what stands above them is said once."""
    head = texts[0].partition(".visible")[0].replace(TARGET, target)
    kernels = (text[text.index(".visible") :] for text in texts)
    return head + "\n".join(
        text.replace(ENTRY, f".entry {name}", 1) for name, text in zip(names, kernels, strict=True)
    )


def _assembled(module: str, target: str) -> tuple[bytes, dict[str, compilers.Usage]]:
    """The cubin, and what each kernel takes."""
    with tempfile.TemporaryDirectory() as folder:
        source, cubin = Path(folder, "kernels.ptx"), Path(folder, "kernels.cubin")
        source.write_text(module, "utf-8")
        said = run("ptxas", "-v", "-arch", target, source, "-o", cubin)
        _, *each = re.split(r"Compiling entry function '(\w+)'", said.stderr + said.stdout)
        return cubin.read_bytes(), dict(
            zip(each[::2], map(compilers.usage, each[1::2]), strict=True)
        )

"""Compare every instruction of gemmlab.instructions with a GPU: its layouts, its results.

On a machine with a GPU:

    python benchmarks/hardware_instructions.py OUT

Reads each fragment layout by a kernel and compares it with the table; runs each instruction on
operands of all bit patterns, on extreme and on normal numbers, and compares with the simulator bit
by bit; writes OUT/instructions.tar.gz with instructions.jsonl, what was found, instructions.npz, a
sample of the hardware's answers, and the printed table. The first two are kept in tests/data as
h200_instructions. What fails is reported and does not stop the rest: a worker process does the
work, and another one goes on where it broke off.
"""

from __future__ import annotations

import json
import platform
import subprocess
import sys
import tarfile
import tempfile
import time
import traceback
import zlib
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(1, str(Path(__file__).resolve().parents[1] / "tests" / "hardware"))

from instruction_probes import INSTRUCTIONS, KINDS, WARP, probe
from layout_probes import read_layout

from gemmlab import instructions, simulate
from gemmlab.instructions.fragments import LAYOUTS
from gemmlab.instructions.instruction import Instruction

BLOCKS = 1000  # warps for each kind of operands
SAMPLE = 2  # of them, whose results are kept


# ------------------------------------------------------------------------------- what is compared


def launch(kernel: Callable, arguments: list[np.ndarray]) -> np.ndarray:
    """The last of the arguments, after a GPU has run the kernel, one warp a block."""
    from gemmlab.driver import numba_cuda

    cuda = numba_cuda()
    on_gpu = [cuda.to_device(a) for a in arguments]
    compiled(kernel)[len(arguments[0]), WARP](*on_gpu)
    cuda.synchronize()
    return on_gpu[-1].copy_to_host()


@cache
def compiled(kernel: Callable) -> Callable:
    """A kernel that Numba compiles once."""
    from gemmlab.driver import numba_cuda

    return numba_cuda().jit(kernel)


def bits(array: np.ndarray) -> np.ndarray:
    """An array's elements as unsigned integers."""
    return np.ascontiguousarray(array).view(f"u{array.itemsize}")


def compare(instruction: Instruction) -> tuple[dict, dict]:
    """Mismatches between GPU and simulator, and a sample of the GPU's results."""
    one = probe(instruction)
    if not one.inputs:
        raise NotImplementedError("it has no result of its own; the copies' probes have it")
    found: dict = {"ptx": instruction.ptx, "compared": 0, "mismatches": 0, "nan_only": 0}
    sample = {}
    for kind in KINDS:
        arguments = one.arguments(BLOCKS, kind)
        hardware = launch(one.kernel, arguments)
        simulate(one.kernel, BLOCKS, WARP, *arguments, device=gpu())
        model = arguments[-1]
        wrong = bits(hardware) != bits(model)
        found["compared"] += wrong.size
        found["mismatches"] += int(wrong.sum())
        if wrong.any():
            both_nan = not_a_number(hardware) & not_a_number(model)
            found["nan_only"] += int((wrong & both_nan).sum())
            at = tuple(int(i) for i in np.argwhere(wrong)[0])
            read = [bits(a)[at[0]].reshape(WARP, -1)[at[1]] for a in arguments[:-1]]
            words = " ".join("/".join(f"{int(w):x}" for w in r[:8]) for r in read)
            found.setdefault("first", f"{kind} {at}: {hardware[at]} {bits(hardware)[at]:#x} on the "
                             f"GPU, {model[at]} {bits(model)[at]:#x} simulated; the lane's "
                             f"operands {words}")  # fmt: skip
        few = one.arguments(SAMPLE, kind)
        sample[f"{instruction.name}/{kind}"] = bits(launch(one.kernel, few))
        sample[f"{instruction.name}/{kind}/inputs"] = np.array(fingerprint(few[:-1]), np.uint32)
    return found, sample


def fingerprint(arrays: list[np.ndarray]) -> int:
    """A checksum of operands, by which others are known to be the same."""
    return zlib.crc32(b"".join(a.tobytes() for a in arrays))


def not_a_number(array: np.ndarray) -> np.ndarray:
    """Where floats are NaN; of packed pairs of 16 bits, where either may be one."""
    if array.dtype.kind == "f":
        return np.isnan(array)
    return np.isnan(bits(array).view(np.float16)).reshape(*array.shape, -1).any(axis=-1)


# ---------------------------------------------------------------------------------------- workers


def gpu():
    """The GPU of this machine."""
    from gemmlab.device import detect

    return detect()


def architecture() -> str:
    """The newest known architecture that this GPU is at least."""
    able = gpu().compute_capability
    return max(
        a for a in ("sm_70", "sm_75", "sm_80", "sm_90") if int(a[3:]) <= able[0] * 10 + able[1]
    )


def tasks() -> list[str]:
    """What there is to do: layouts by their number, instructions by their name."""
    arch = architecture()
    there = [n for n, x in enumerate(LAYOUTS) if not x.archs or arch in x.archs]
    return [f"layout {n}" for n in there] + [x.name for x in INSTRUCTIONS]


def check(task: str) -> tuple[dict, dict]:
    """What a task finds, and arrays to keep."""
    if not task.startswith("layout"):
        return compare(getattr(instructions, task))
    form = LAYOUTS[int(task.split()[1])]
    read = read_layout(form, launch)
    wrong = int((read != form.table).any(axis=-1).sum())
    count = read.shape[0] * read.shape[1]
    return {"compared": count, "mismatches": wrong}, {title(task): read.astype(np.int8)}


def work(out: Path, todo: list[str]) -> None:
    """Do one task after the other; each leaves a file when it begins and one when it is done."""
    for task in todo:
        name = task.replace(" ", "_")
        (out / f"{name}.begun").touch()
        started, sample = time.time(), {}
        try:
            found, sample = check(task)
        except Exception as error:
            text = f"{type(error).__name__}: {error}"[:600]
            if isinstance(error, NotImplementedError) or "needs compute capability" in text:
                found = {"skipped": text.splitlines()[0]}
            else:
                found = {"failed": text, "where": traceback.format_exc(limit=-3)[-1500:]}
        found["seconds"] = round(time.time() - started, 2)
        np.savez_compressed(
            out / f"{name}.npz", **{k.replace("/", "|"): v for k, v in sample.items()}
        )
        (out / f"{name}.json").write_text(json.dumps(found), "utf-8")
        if "failed" in found and "CUDA" in found["failed"]:
            raise SystemExit(1)  # its context may be dead


def main(out: Path) -> None:
    """Let workers do all tasks; gather what they found."""
    if gpu().kind != "gpu":
        raise SystemExit("no GPU works here; `gemmlab doctor` says what is missing")
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        parts, kept = Path(folder) / "parts", Path(folder) / "kept"
        parts.mkdir()
        kept.mkdir()
        results = gather(parts)
        origin = provenance()
        with (kept / "instructions.jsonl").open("w", encoding="utf-8", newline="\n") as file:
            for task, found in results.items():
                line = {"task": title(task), **found, **origin}
                file.write(json.dumps(line, separators=(",", ":")) + "\n")
        arrays = {}
        for task in results:
            part = parts / f"{task.replace(' ', '_')}.npz"
            if part.exists():
                arrays |= {k.replace("|", "/"): v for k, v in np.load(part).items()}
        np.savez_compressed(kept / "instructions.npz", **arrays)
        text = report(results)
        (kept / "log.txt").write_text(text, "utf-8")
        with tarfile.open(out / "instructions.tar.gz", "w:gz") as tar:
            for file in sorted(kept.iterdir()):
                tar.add(file, arcname=file.name)
    print(text)


def gather(parts: Path) -> dict[str, dict]:
    """What workers found, by task; each task leaves its files in `parts`."""
    everything = tasks()
    results: dict[str, dict] = {}
    while todo := [t for t in everything if t not in results]:
        command = [sys.executable, __file__, "--work", str(parts), *todo]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        before = len(results)
        for task in todo:
            file = parts / f"{task.replace(' ', '_')}.json"
            if file.exists():
                results[task] = json.loads(file.read_text("utf-8"))
            elif file.with_suffix(".begun").exists():
                results[task] = {"failed": f"the worker died: {done.stderr[-600:]}"}
        if len(results) == before:
            raise SystemExit(f"no worker starts:\n{done.stderr[-3000:]}")
    return {task: results[task] for task in everything}


def provenance() -> dict[str, str]:
    """Device, versions and date."""
    import numba_cuda

    device = gpu()
    return {
        "device": device.title,
        "compute_capability": ".".join(str(n) for n in device.compute_capability),
        "numba_cuda": numba_cuda.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "blocks": str(BLOCKS),
    }


def title(task: str) -> str:
    """A task as the table names it."""
    if not task.startswith("layout"):
        return task
    x = LAYOUTS[int(task.split()[1])]
    return " ".join(("layout", x.instruction, x.operand, *x.formats, x.major)).strip()


def report(results: dict[str, dict]) -> str:
    """A table, and what went wrong below it."""
    lines = [f"{'':42}{'compared':>10}{'mismatches':>12}{'of NaN':>8}{'seconds':>9}"]
    for task, r in results.items():
        state = r.get("skipped") or r.get("failed")
        counts = (r.get("compared", 0), r.get("mismatches", 0), r.get("nan_only", 0))
        cells = state[:70] if state else "{:>10}{:>12}{:>8}".format(*counts)
        lines.append(f"{title(task):42}{cells}{r.get('seconds', 0):>9}")
    for task, r in results.items():
        if r.get("first"):
            lines.append(f"{title(task)}: {r['first']}")
        if r.get("failed"):
            lines.append(f"{title(task)}: {r['failed']}\n{r.get('where', '')}")
    failed = sum("failed" in r for r in results.values())
    compared, wrong = (
        sum(r.get(n, 0) for r in results.values()) for n in ("compared", "mismatches")
    )
    lines.append(f"{len(results)} tasks, {failed} failed, {compared} values, {wrong} mismatches")
    return "\n".join(lines)


if __name__ == "__main__":
    if sys.argv[1] == "--work":
        work(Path(sys.argv[2]), sys.argv[3:])
    else:
        main(Path(sys.argv[1]))

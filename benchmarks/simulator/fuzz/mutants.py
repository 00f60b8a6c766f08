"""Mutants of the library's own pipelines: each slip is found by a hazard, or by a wrong value.

    python -m benchmarks.simulator.fuzz.mutants [KERNEL ...]

A mutant is a kernel of `gemmlab.kernels` with one slip in its source: a barrier, a fence, a wait, a
commit or an arrival that is not there, or comes a line earlier or later; a wait for one group more
or less; another stage of the ring, or the other phase; other bytes expected, or arrivals counted;
an atomic that is none. The source is changed in memory alone. A small product, which takes several
turns of the ring and several tiles of a block, is computed by each: it is *found* by a hazard, by
its values, because it does not end, or because it is refused; else it is *equal*, for a reason that
stands in `EQUAL`, or *missed*. All of them take a quarter of an hour; what came out is recorded.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib
import importlib.abc
import importlib.util
import linecache
import multiprocessing
import platform
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import gemmlab
from benchmarks.hardware.check import Result
from benchmarks.hardware.store import read, write
from gemmlab import Gemm, Tiling, device, simulate
from gemmlab.measure.backends.checking import workspace
from gemmlab.simt import HazardError

RECORDED = Path(__file__).parent.parent / "recorded" / "mutants"
PACKAGE = "gemmlab.kernels"
SECONDS = 120  # after which a mutant is said not to end
MAX_STEPS = 4000  # turns of a `while` that a thread may make

# Names of calls that order threads and what they do asynchronously.
ORDERING = re.compile(
    r"(cuda\.)?(syncthreads|syncwarp|cluster_sync\w*|threadfence\w*|fence_\w+"
    r"|cp_async_(commit|wait)|setmaxnreg_\w+|wgmma_(fence|commit|wait)|tma_(commit|wait_read|load|store)|mbarrier_\w+)$"
)
COUNTED = ("cp_async_wait", "wgmma_wait", "tma_wait_read")  # the first argument: groups left
AT_BARRIER = tuple(
    f"mbarrier_{name}" for name in ("wait", "arrive", "arrive_expect", "arrive_remote")
)
DEPTHS = ("PENDING", "OTHERS", "AHEAD")  # constants that say how many groups may be under way


class Case(NamedTuple):
    """A product to try a kernel on."""

    problem: Gemm
    tiling: Tiling


@dataclass(frozen=True)
class Pipeline:
    """A kernel, the modules whose sources are changed, and the products that it is tried on."""

    kernel: str
    modules: tuple[str, ...]
    cases: tuple[Case, ...]


def _half(m: int, n: int, k: int, layout: str = "nt", **more: Any) -> Gemm:
    return Gemm(m, n, k, dtype="float16", out_dtype="float32", layout=layout, **more)


HOPPER = Tiling((128, 64, 64), stages=2)
ONE = Tiling((64, 64, 64), stages=2)
PAIRS = Tiling((128, 128, 64), stages=2)
SIMT = Tiling((64, 64, 8), (8, 8), 3, (64, 32))
WIDE = Tiling((128, 128, 64), (8, 8), 2, (64, 32))
MMA = Tiling((32, 32, 32), (2, 4), 3, (16, 16))
PIPELINES = (
    Pipeline("pipelined", ("simt.pipelined",),
             (Case(Gemm(64, 64, 64), SIMT),)),
    Pipeline("mma_pipelined", ("tensor_core.mma_pipelined",),
             (Case(_half(64, 32, 200), MMA), Case(_half(64, 32, 96), replace(MMA, stages=1)))),
    Pipeline("mma_tuned", ("tensor_core.mma_tuned",), (Case(_half(64, 32, 200), MMA),)),
    Pipeline("mma_tma", ("tensor_core.mma_tma",),
             (Case(_half(128, 256, 320), WIDE),
              Case(_half(128, 128, 321), WIDE))),
    Pipeline("wgmma_pipelined", ("tensor_core.wgmma_pipelined",),
             (Case(_half(64, 64, 328), Tiling((64, 64, 64), stages=4)),
              Case(_half(128, 64, 330), Tiling((128, 64, 64), stages=4)))),
    Pipeline("warp_specialised", ("tensor_core.warp_specialised", "tensor_core.shared.tma_tiles"),
             (Case(_half(128, 128, 320), HOPPER), Case(_half(128, 64, 321), HOPPER),
              Case(_half(128, 64, 192, "tn"), HOPPER))),
    Pipeline("tma_stored", ("tensor_core.tma_stored", "tensor_core.shared.accumulators:storing"),
             (Case(_half(128, 128, 320), HOPPER),)),
    Pipeline("tma_multicast", ("tensor_core.tma_multicast", "tensor_core.shared.tma_tiles:sending",
                               "tensor_core.shared.accumulators:storing_halves"),
             (Case(replace(_half(512, 128, 320), out_dtype="float16"), PAIRS),
              Case(replace(_half(256, 128, 192), out_dtype="float16"), PAIRS))),
    Pipeline("wgmma_split_k", ("split_k.wgmma_split_k", "split_k.shared.workspace_matrices"),
             (Case(_half(128, 128, 640), replace(HOPPER, split=2)),
              Case(_half(128, 64, 321), replace(HOPPER, split=2)))),
    Pipeline("cluster_split_k", ("split_k.cluster_split_k",),
             (Case(_half(64, 64, 640), ONE), Case(_half(64, 64, 321), ONE))),
    Pipeline("split_k", ("split_k.split_k", "split_k.shared.mainloop"),
             (Case(Gemm(64, 64, 96), replace(SIMT, split=4)),)),
    Pipeline("stream_k", ("split_k.stream_k", "split_k.shared.workspace_tiles:adding"),
             (Case(Gemm(64, 192, 96), replace(SIMT, split=8)),
              Case(Gemm(64, 192, 96), replace(SIMT, split=2)))),
    Pipeline("split_k_atomics", ("split_k.split_k_atomics",),
             (Case(Gemm(64, 64, 96), replace(SIMT, split=2)),)),
    Pipeline("mma_split_k", ("split_k.mma_split_k",),
             (Case(_half(32, 32, 400), replace(MMA, split=4)),)),
    Pipeline("mma_stream_k", ("split_k.mma_stream_k", "split_k.shared.mainloop_mma",
                              "split_k.shared.workspace_tiles:adding_pairs"),
             (Case(_half(32, 96, 232), replace(MMA, split=8)),
              Case(_half(32, 96, 200), replace(MMA, split=2)),
              Case(_half(32, 96, 232), replace(MMA, split=2)),
              Case(_half(32, 96, 264), replace(MMA, split=2)))),
    Pipeline("mma_split_k_atomics", ("split_k.mma_split_k_atomics",),
             (Case(_half(64, 32, 200), replace(MMA, split=2)),)),
    Pipeline("tcec_registers", ("tcec.tcec_registers",),
             (Case(Gemm(64, 64, 160), Tiling((32, 32, 32), (2, 4), 3, (16, 16))),)),
    Pipeline("tcec_mma_tma", ("tcec.tcec_mma_tma",),
             (Case(Gemm(64, 128, 320), Tiling((64, 64, 64), (2, 8), 3, (16, 32))),
              Case(Gemm(64, 128, 256), Tiling((64, 64, 64), (2, 8), 3, (16, 32))))),
    Pipeline("tcec_split", ("tcec.tcec_split", "tcec.shared.warpgroup_tiles",
                            "tcec.shared.split_operands"),
             (Case(Gemm(128, 128, 256), Tiling((128, 64, 64), stages=2)),)),
    Pipeline("tcec_fused", ("tcec.tcec_fused", "tcec.shared.in_place"),
             (Case(Gemm(128, 128, 320), Tiling((128, 64, 64), stages=3)),
              Case(Gemm(128, 64, 321), Tiling((128, 64, 64), stages=3)))),
)  # fmt: skip


class Mutant(NamedTuple):
    """One slip: the module, its line and that line's text, what is changed, and the new source."""

    module: str
    line: int
    text: str
    change: str
    source: str

    @property
    def name(self) -> str:
        return f"{self.module}, {self.text}: {self.change}"


# Why a mutant that nothing finds is as right as its original: a pattern of its line, one of its
# change, and the reason.
EQUAL = (
    (r"", r"(- 1|one group less)$", "waits for more than it must, or copies less far ahead"),
    (r"setmaxnreg_", r"", "`ptxas` deals out the registers that there are: slower, not wrong"),
    (r"mbarrier_arrive_expect", r"(behind|before) (copy|tma_load)",
     "bytes that come before they are expected are counted, and the arrival is still missing"),
    (r"mbarrier_init", r"(behind|before) (mbarrier_init|for stage)",
     "mbarriers, made in another order"),
    (r"mbarrier_\w+\(come", r"the next stage", "there is one of them: the next is the same"),
    (r"fence_mbarrier_init", r"behind mbarrier_arrive_expect",
     "nobody else asks for the mbarrier before the cluster has met"),
    (r"fence_tensor_map", r"(behind|before) fence_tensor_map", "two fences, in another order"),
    (r"mbarrier_arrive|if (leads|s > 0|peer)", r"behind ",
     "the stage is given back later than needed"),
    (r"", r"(behind|before) wgmma_fence", "the fence is about accumulators, which nobody touches"),
    (r"wgmma_fence", r"(behind|before) ", "the fence is about accumulators, which nobody touches"),
    (r"cuda\.syncwarp", r"before later|behind high",
     "the loads that it orders come before it, and the stores behind it, in both places"),
    (r"cp_async_wait|if asynchronous", r"behind cuda\.syncthreads",
     "a thread overwrites what it has copied itself, and waits before that"),
    (r"wgmma_commit", r"behind correct", "the products are waited for together: slower"),
    (r"wgmma_commit", r"behind ", "no product comes between: the group is the same"),
    (r"(wgmma|cp_async|tma)_wait", r"before ", "waits earlier than it must"),
    (r"wgmma_wait\(2, cross\)", r"left out|one group more|behind multiply",
     "`ptxas` gives A other registers as long as a product may read those before: more registers"),
)  # fmt: skip


# --------------------------------------------------------------------------------------- slips


def source_of(module: str) -> str:
    """Return the text of a module of kernels."""
    folder = Path(gemmlab.__file__).parent / "kernels"
    return (folder / (module.replace(".", "/") + ".py")).read_text("utf-8")


def nodes(source: str, function: str) -> Iterator[ast.AST]:
    """All nodes of a module, or of one of its functions."""
    tree = ast.parse(source)
    named = (n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == function)
    return ast.walk(next(named) if function else tree)


def mutants(module: str, function: str = "") -> Iterator[Mutant]:
    """All mutants of a module, or of one of its functions."""
    source = source_of(module)
    lines = source.splitlines(keepends=True)
    for node in nodes(source, function):
        for change, first, last, new in _slips(node, source, lines):
            text = lines[node.lineno - 1].strip().partition("  #")[0]
            whole = "".join(lines[: first - 1]) + new + "".join(lines[last:])
            yield Mutant(module, node.lineno, text, change, whole)


def _slips(node: ast.AST, source: str, lines: list[str]) -> Iterator[tuple[str, int, int, str]]:
    """Slips at a node: what is changed, and the lines that get a new text."""
    if isinstance(node, ast.Expr) and _ordering(node.value):
        yield "left out", *_span(node), _indent(node, lines) + "pass\n"
    if isinstance(node, ast.Call):
        for change, argument, new in _arguments(node, source):
            yield change, *_span(argument), _replaced(argument, lines, new)
    if isinstance(node, ast.AugAssign) and ast.unparse(node.target) in ("step", "turn", "at"):
        yield "left out", *_span(node), _indent(node, lines) + "pass\n"
    if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in DEPTHS:
        for by in ("+ 1", "- 1"):
            new = f"({ast.get_source_segment(source, node.value)}) {by}"
            yield by, *_span(node.value), _replaced(node.value, lines, new)
    if isinstance(node, ast.If) and any(map(_arrives, node.body)) and not node.orelse:
        yield "for all threads", *_span(node.test), _replaced(node.test, lines, "True")


def moved(module: str, function: str = "") -> Iterator[Mutant]:
    """Mutants in which an ordering statement changes places with the one before or after it."""
    source = source_of(module)
    lines = source.splitlines(keepends=True)
    for node in nodes(source, function):
        for field in ("body", "orelse"):
            block = getattr(node, field, None)
            if not isinstance(block, list) or isinstance(node, (ast.Module, ast.ClassDef)):
                continue
            for here, after in pairwise(block):
                first, second = _is_ordering(here), _is_ordering(after)
                if not (first or second) or not (_acts(here) and _acts(after)):
                    continue
                start, middle, end = here.lineno, after.lineno, after.end_lineno
                new = "".join([*lines[middle - 1 : end], *lines[start - 1 : middle - 1]])
                whole = "".join(lines[: start - 1]) + new + "".join(lines[end:])
                one = here if first else after
                text = lines[one.lineno - 1].strip().partition("  #")[0]
                other = lines[(after if first else here).lineno - 1].strip().partition("  #")[0]
                change = f"{'behind' if first else 'before'} {other}"
                yield Mutant(module, one.lineno, text, change, whole)


def _ordering(node: ast.AST) -> str:
    """Return the name of the ordering call that a node is, or ""."""
    if isinstance(node, ast.Call) and ORDERING.match(name := ast.unparse(node.func)):
        return name.removeprefix("cuda.")
    return ""


def _is_ordering(statement: ast.stmt) -> bool:
    """Whether a statement is an ordering call, or a branch of one."""
    if isinstance(statement, ast.If) and len(statement.body) == 1 and not statement.orelse:
        return _is_ordering(statement.body[0])
    return isinstance(statement, ast.Expr) and bool(_ordering(statement.value))


def _acts(statement: ast.stmt) -> bool:
    """Whether a statement touches memory, or orders something, and does not return."""
    if isinstance(statement, (ast.Return, ast.FunctionDef, ast.Import, ast.ImportFrom)):
        return False
    calls = (n for n in ast.walk(statement) if isinstance(n, ast.Call))
    names = {ast.unparse(call.func) for call in calls}
    pure = r"u?int\d+|float\d+|range|min|max|shared_view|cuda\.local\.array|corner|after|\w+_of"
    return any(not re.fullmatch(pure, name) for name in names)


def _arrives(statement: ast.stmt) -> bool:
    return any(_ordering(n) in ("mbarrier_arrive", "mbarrier_init") for n in ast.walk(statement))


def _arguments(call: ast.Call, source: str) -> Iterator[tuple[str, ast.expr, str]]:
    """Slips in the arguments of a call: what is changed, which one, its new text."""
    name, given = _ordering(call), call.args
    texts = [ast.get_source_segment(source, a) for a in given]
    if name in COUNTED and texts[0].isdigit():  # Numba takes constants there
        yield "one group more", given[0], f"{int(texts[0]) + 1}"
        if texts[0] != "0":
            yield "one group less", given[0], f"{int(texts[0]) - 1}"
    if name in AT_BARRIER:
        of_next = f"({texts[1]} + 1) % {texts[0]}.shape[0]"
        yield "the next stage", given[1], of_next
    if name == "mbarrier_wait":
        yield "the other phase", given[2], f"({texts[2]}) ^ uint32(1)"
    if name == "mbarrier_arrive_expect":
        yield "128 bytes more", given[2], f"({texts[2]}) + 128"
        yield "128 bytes less", given[2], f"({texts[2]}) - 128"
    if name == "mbarrier_init":
        yield "one arrival more", given[2], f"({texts[2]}) + 1"
        yield "one arrival less", given[2], f"({texts[2]}) - 1"
    if name == "tma_load":
        yield "the next stage", given[1], f"({texts[1]} + uint32(1)) % uint32({texts[-2]}.shape[0])"
        of_next = f"({texts[-1]} + uint32(1)) % uint32({texts[-2]}.shape[0])"
        yield "the next stage's mbarrier", given[-1], of_next
    if ast.unparse(call.func) == "stage_of" and len(given) == 1:
        yield "a step later", given[0], f"uint32({texts[0]} + uint32(1))"
    if ast.unparse(call.func) in ("parity_of", "parity_of_b"):
        yield "a step later", given[0], f"uint32({texts[0]} + uint32(1))"
    if ast.unparse(call.func) == "cuda.atomic.add" and isinstance(given[1], ast.Tuple):
        yield "a plain addition", call, f"{texts[0]}[{texts[1]}] += {texts[2]}"


def _span(node: Any) -> tuple[int, int]:
    return node.lineno, node.end_lineno


def _indent(node: Any, lines: list[str]) -> str:
    line = lines[node.lineno - 1]
    return line[: len(line) - len(line.lstrip())]


def _replaced(node: Any, lines: list[str], new: str) -> str:
    """Return the lines of an expression, with another one in its place."""
    first = lines[node.lineno - 1].encode()[: node.col_offset].decode()
    last = lines[node.end_lineno - 1].encode()[node.end_col_offset :].decode()
    return first + new + last


def all_of(pipeline: Pipeline) -> list[Mutant]:
    """All mutants of a pipeline, each once."""
    found = {}
    for name in pipeline.modules:
        module, _, function = name.partition(":")
        for one in (*mutants(module, function), *moved(module, function)):
            found.setdefault(one.source, one)
    return list(found.values())


# --------------------------------------------------------------------------------------- trials


class Source(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports one module from another text than its file's."""

    def __init__(self, module: str, source: str) -> None:
        self.module, self.source = f"{PACKAGE}.{module}", source
        self.file = f"<{module}, mutant {hash(source):x}>"

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != self.module:
            return None
        return importlib.util.spec_from_loader(name, self, origin=self.file)

    def exec_module(self, module: Any) -> None:
        lines = self.source.splitlines(keepends=True)
        linecache.cache[self.file] = len(self.source), None, lines, self.file
        exec(compile(self.source, self.file, "exec"), module.__dict__)


@contextlib.contextmanager
def kernels_with(mutant: Mutant) -> Iterator[Any]:
    """The package of kernels, all modules anew, one of them with its slip."""
    ours = {n: m for n, m in sys.modules.items() if n == PACKAGE or n.startswith(PACKAGE + ".")}
    package = gemmlab.kernels
    for name in ours:
        del sys.modules[name]
    finder = Source(mutant.module, mutant.source)
    sys.meta_path.insert(0, finder)
    try:
        yield importlib.import_module(PACKAGE)
    finally:
        sys.meta_path.remove(finder)
        for name in [n for n in sys.modules if n == PACKAGE or n.startswith(PACKAGE + ".")]:
            del sys.modules[name]
        sys.modules.update(ours)
        gemmlab.kernels = package


def computed(kernel: Any, case: Case) -> tuple[str, str]:
    """Compute a product: how a fault was found, "" for none, and what was said."""
    problem, tiling = case
    operands = problem.operands()
    a, b, c = operands
    (alpha, beta), result = problem.scalars(), problem.poisoned(c)
    sms = max(one.cluster for one in kernel.launches)
    gpu = replace(device("h200"), sms=sms)  # persistent blocks take several tiles
    given = kernel.operands(problem, tiling, a.copy(), b.copy())
    scratch = kernel.scratch(problem, tiling, *workspace(kernel, problem, tiling))
    out = kernel.result(problem, tiling, result)
    for one in kernel.launches:
        simulate(
            one.function(problem, tiling), *one.launch(problem, tiling, gpu), alpha, *given, beta,
            *out, *scratch, shared_bytes=one.dynamic_shared_bytes(problem, tiling),
            max_steps=MAX_STEPS, cluster=one.cluster,
        )  # fmt: skip
    error, tolerance = problem.error(result, operands), kernel.tolerance(problem)
    return ("", "") if error <= tolerance else ("value", f"error {error:.2g}")


def tried(pipeline: Pipeline, mutant: Mutant) -> tuple[str, str]:
    """Try a mutant: how it was found, "" for one that was not, and what was said."""
    try:
        with kernels_with(mutant) as kernels:
            kernel = kernels.get(pipeline.kernel)
            for case in pipeline.cases:
                how, said = computed(kernel, case)
                if how:
                    return how, said
    except HazardError as found:
        hazard = found.hazard
        ends = hazard.kind not in ("deadlock", "step-limit")
        return "hazard" if ends else "not ending", f"{hazard.kind}: {hazard.code.strip()}"
    except Exception as error:
        said = re.sub(r" object at \w+", "", str(error).splitlines()[0])
        return "refused", f"{type(error).__name__}: {said}"
    return "", ""


def _send(pipe: Any, pipeline: Pipeline, mutant: Mutant) -> None:
    pipe.send(tried(pipeline, mutant))


def apart(pipeline: Pipeline, mutant: Mutant) -> tuple[str, str]:
    """Try a mutant in a process of its own, which is ended if it does not end itself."""
    processes = multiprocessing.get_context("fork")
    ours, theirs = processes.Pipe(duplex=False)
    process = processes.Process(target=_send, args=(theirs, pipeline, mutant))
    process.start()
    theirs.close()
    try:
        return ours.recv() if ours.poll(SECONDS) else ("not ending", f"{SECONDS} s")
    except EOFError:
        return "refused", "the process has ended"
    finally:
        process.kill()
        process.join()


# -------------------------------------------------------------------------------------- records


def judged(text: str, change: str, how: str, said: str) -> tuple[str, str]:
    """What became of a mutant: how it was found, else "equal" or "missed", and why."""
    if how:
        return how, said
    for line, slip, reason in EQUAL:
        if re.match(line, text) and re.match(slip, change):
            return "equal", reason
    return "missed", ""


def result_of(pipeline: Pipeline, rows: list[tuple[Mutant, str, str]]) -> Result:
    """What is recorded of a pipeline's mutants."""
    found = [[m.module, m.text, m.change, *judged(m.text, m.change, h, s)] for m, h, s in rows]
    origin = {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    return Result(pipeline.kernel, {"mutants": found}, origin)


def recorded() -> dict[str, Result]:
    """What was recorded, by kernel: of each mutant its module, line, change, end, and words."""
    return read(RECORDED)


def counts() -> dict[str, Counter]:
    """How many mutants of each kernel were found how."""
    return {
        name: Counter(how for *_, how, _ in result.measured["mutants"])
        for name, result in recorded().items()
    }


def sentence() -> str:
    """The totals in a sentence, as `book/hazards.md` has it."""
    found = sum(counts().values(), Counter())
    return (
        f"Of {found.total()} mutants of {len(PIPELINES)} pipelines, {found['hazard']} are found by "
        f"a hazard, {found['value']} by a wrong value, {found['not ending']} because they do not "
        f"end, and {found['refused']} are refused; {found['equal']} are equal to what they were "
        f"made from, and {found['missed']} are missed"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kernels", nargs="*", metavar="KERNEL", help="default: all")
    wanted = parser.parse_args().kernels or [pipeline.kernel for pipeline in PIPELINES]
    known = recorded()
    for pipeline in PIPELINES:
        if pipeline.kernel in wanted:
            rows = [(mutant, *apart(pipeline, mutant)) for mutant in all_of(pipeline)]
            known[pipeline.kernel] = result_of(pipeline, rows)
            write(RECORDED, (known[p.kernel] for p in PIPELINES if p.kernel in known))
            print(pipeline.kernel, dict(counts()[pipeline.kernel]), flush=True)
    print("all", dict(sum(counts().values(), Counter())))


if __name__ == "__main__":
    main()

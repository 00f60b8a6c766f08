"""A work log: entries in a file, each judged before it is kept."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from gemmlab.course.judging.apart import NotJudged
from gemmlab.course.text import Markdown
from gemmlab.course.worklog import page
from gemmlab.course.worklog.entries import SENTENCES, Entry, launch_of, rung_of, text_of
from gemmlab.course.worklog.judging import GPUS, Judged, judge
from gemmlab.course.worklog.shapes import Shape, shape_called
from gemmlab.device import device
from gemmlab.here import files
from gemmlab.kernels import Kernel
from gemmlab.measure import backends
from gemmlab.measure.measurement import Measurement, duration
from gemmlab.problem import Gemm, Operands

MOST = 8 << 20  # bytes of a log


class Html:
    """A piece of a page, and the text that stands for it on a terminal."""

    def __init__(self, html: str, text: str) -> None:
        self.html, self.text = html, text

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return self.html


class Log:
    """The entries for one shape, kept in a file after each.

    Shown in a notebook it is a ladder: the entries beside the course's kernels and cuBLAS.
    """

    def __init__(self, shape: Shape, path: Path) -> None:
        self.shape, self.path = shape, path
        self.entries = read(path, shape) if path.exists() else []

    def add(
        self,
        kernel: Callable | Kernel,
        tile: Any = None,
        *,
        grid: Any = None,
        block: Any = None,
        changed: str = "",
        expected: str = "",
        came: str = "",
    ) -> Markdown:
        """Judge a kernel, predict and, on a GPU, measure its time, and keep it if it is right.

        kernel, tile, grid, block : as `kernels.own` takes them
        changed, expected, came : what you changed, what you expect, and what came of it. Add the
            same kernel again to write the last one: it is not judged again, and what you expected
            before its time was known stays
        What is wrong is told in words; the log stays as it was then.
        """
        said = {"changed": changed, "expected": expected, "came": came}
        wrong = next((k for k, v in said.items() if not isinstance(v, str)), "")
        if wrong:
            return Markdown(f"**Not added.** {wrong}={said[wrong]!r} is no text; use a sentence.")
        said = {name: "" if text.strip(" .…") == "" else text for name, text in said.items()}
        try:
            rung = rung_of(kernel, tile, grid, block)
            function = kernel.build if isinstance(kernel, Kernel) else kernel
            source = text_of(*([function, grid] if callable(grid) else [function]))
            name = getattr(function, "py_func", function).__name__
            launch = launch_of(grid, block, rung)
        except (TypeError, ValueError, OSError) as error:
            return Markdown(f"**Not added.** {error}")
        entry = Entry(name=name, source=source, judged=Judged("not-judged"), **launch, **said)
        for number, old in enumerate(self.entries, 1):
            if old.made_of == entry.made_of:
                kept = {s: getattr(old, s) or said[s] for s in SENTENCES[:2]}
                again = replace(old, **kept, came=said["came"] or old.came)
                stays = "" if said["expected"] in ("", again.expected) else (
                    " What you expected stays as it was, before the time was known."
                )  # fmt: skip
                return Markdown(self._keep(again, number) + stays)
        missing = [name for name in SENTENCES[:2] if self.entries and not said[name]]
        if missing:
            told = " and ".join(f'{name}="…"' for name in missing)
            return Markdown(
                f"**Not added.** From the second entry on say it in a sentence each: {told}. The "
                "log asks before the time is known."
            )
        try:
            found = judge(rung, self.shape)
        except NotJudged as busy:
            return Markdown(f"**Not added: not judged.** {busy}")
        if not found.passed:
            facts = "\n".join(f"- {label}: {text}" for label, text in found.facts)
            return Markdown(f"**Not added: {found.diagnosis}.**\n\n{facts}")
        try:
            measured = _measured(rung, self.shape)
        except (RuntimeError, ValueError) as error:
            return Markdown(f"**Not added.** On this GPU: {error}")
        return self._keep(replace(entry, judged=found, measured=measured), len(self.entries) + 1)

    def _keep(self, entry: Entry, number: int) -> Markdown:
        entries = [*self.entries[: number - 1], entry, *self.entries[number:]]
        data = {"shape": self.shape.name, "entries": [e.data for e in entries]}
        files.put(self.path, json.dumps(data, indent=1, ensure_ascii=False).encode())
        self.entries = entries
        return Markdown(self._told(number))

    def _told(self, number: int) -> str:
        entry, found = self.entries[number - 1], self.entries[number - 1].judged
        lines = [f"**Entry {number}, {entry.name}: right{found.far}.**"]
        for gpu, seconds in found.seconds.items():
            lines.append(f"Predicted on {device(gpu).title}: {duration(seconds)}.")
        for title, seconds in entry.measured.items():
            lines.append(f"Measured on {title}: {duration(seconds)}.")
        before = self.entries[number - 2].judged.seconds if number > 1 else {}
        if GPUS[0] in before and GPUS[0] in found.seconds:
            times = before[GPUS[0]] / found.seconds[GPUS[0]]
            best, fastest = min(
                (entry.judged.seconds[GPUS[0]], place)
                for place, entry in enumerate(self.entries[: number - 1], 1)
                if GPUS[0] in entry.judged.seconds
            )
            beside = f", and {best / found.seconds[GPUS[0]]:.2f} times that of entry {fastest}"
            beside = f"{beside}, your fastest before it" if fastest != number - 1 else ""
            lines.append(f"That is {times:.2f} times the speed of entry {number - 1}{beside}.")
        lines += [f"The dearest lines: {page.dearest(found.lines)}."] if found.lines else []
        lines += [found.waits[GPUS[0]]] if GPUS[0] in found.waits else []
        lines += [f"{label}: {text}." for label, text in found.facts]
        return " ".join(lines)

    def export(self, path: str | Path, who: str = "") -> Path:
        """Write one page that needs no network: the ladder, and each entry with all about it.

        who : your name, for whoever reads it
        """
        path = Path(path)
        files.put(path, page.whole(self.shape, self.entries, who).encode())
        return path

    def example(self) -> Html:
        """A recorded log of five entries: the ladder, and as many entries as this log has.

        Their kernels are shown once it has all of them.
        """
        logs = json.loads(page.WORKED.read_text("utf-8"))
        entries = [Entry.of(one) for one in logs[self.shape.name]["entries"]]
        own, enough = len(self.entries), len(self.entries) >= len(entries)
        told = f"{len(entries)} entries by somebody else; your log has {own}"
        said = (
            "What they say is shown entry by entry, as yours are added, and their kernels once "
            f"yours has {len(entries)}."
        )
        body = page.example(self.shape, entries, own, sources=enough)
        fold = f"<details{' open' * enough}><summary>{told}</summary>{body}</details>"
        return Html(fold if enough else f"{fold}<p>{said}</p>", f"{told}. {'' if enough else said}")

    def __repr__(self) -> str:
        return page.as_text(self.shape, self.entries)

    def _repr_html_(self) -> str:
        return page.ladder(self.shape, self.entries)


def open_log(shape: str, folder: str | Path = ".") -> Log:
    """The log for a shape, "square", "skinny" or "batched", in a file of a folder.

    Raises ValueError for another shape, and for a file that is no log of this shape.
    """
    found = shape_called(shape)
    return Log(found, Path(folder) / f"worklog-{found.name}.json")


def read(path: Path, shape: Shape | None = None) -> list[Entry]:
    """The entries of a file, as they were kept; ValueError, quoting the file, for another file."""
    return entries_of(path.read_bytes(), str(path), shape)[1]


def entries_of(content: bytes, where: str, shape: Shape | None = None) -> tuple[Shape, list[Entry]]:
    """The shape and the entries in these bytes."""
    try:
        if len(content) > MOST:
            raise ValueError(f"{len(content):,} bytes, of at most {MOST:,}")
        data = json.loads(content)
        found = shape_called(data["shape"])
        entries = [Entry.of(one) for one in data["entries"]]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ValueError(f"{where} is no work log: {error}") from None
    if shape and shape != found:
        raise ValueError(f"{where} is the log of {found.name}, and not of {shape.name}")
    return found, entries


def _measured(rung: Kernel, shape: Shape) -> dict[str, float]:
    """The time on the GPU of this machine, empty where there is none; RuntimeError if wrong."""
    if backends.available(rung)[0] != "gpu":
        return {}
    made = (
        backends.run(rung, shape.problem, "gpu") if shape.batch == 1 else timed_batch(rung, shape)
    )
    if not made.passed:
        raise RuntimeError(f"the result is wrong: its error is {made.error:.3g}")
    return {made.device_title: made.seconds}


def timed_batch(rung: Kernel, shape: Shape) -> Measurement:
    """Check and time a batch on the GPU: each B has a place of its own, and all are equal."""
    from gemmlab.measure.backends import gpu

    class Batch(gpu.Matrices):
        """The matrices of one problem, and B as often as there are products."""

        def __init__(self, problem: Gemm) -> None:
            super().__init__(problem)
            b = shape.batch * problem.k, problem.n
            self.every_b = gpu.host.cuda().device_array(b, np.float32)

        def load(self, problem: Gemm, operands: Operands) -> None:
            super().load(problem, operands)
            self.every_b.copy_to_device(np.tile(operands.b, (shape.batch, 1)))

    problem = shape.problem
    matrices = Batch(problem)
    mine = replace(rung, operands=lambda problem, tiling, a, b: (a, matrices.every_b))
    return gpu.run(mine, problem, problem.operands(), rung.default, matrices=matrices)

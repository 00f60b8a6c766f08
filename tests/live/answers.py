"""What exercises say of answers: their solutions, what is left to write, and what never ends.

    python -m tests.live.answers OUT [NAME ...]

NAME is an exercise, such as 04.1; all of them where none is given. Of a verdict the diagnosis is
kept: how many turns or seconds an answer was given differs from machine to machine.
"""

# ruff: noqa: B023 (`note` calls what it is given at once)

import builtins
import linecache
import sys
import time
from collections.abc import Callable

from benchmarks.live.told import Results
from gemmlab import exercises
from gemmlab.course.judging import source
from tests.course.answers import JUDGED, for_ever

ENDLESS = {
    "while": "while True: pass",
    "count": "n = 0\n    while n >= 0:\n        n += 1",
    "list": "[0 for _ in iter(int, 1)]",
    "generator": "sum(1 for _ in iter(int, 1))",
    "calls": "g = lambda: 0\n    while g() == 0: g()",
    "kept": "while True:\n        try: x = 0\n        except BaseException: pass",
}
IN_KERNEL = {"while": "while True: pass", "for": "for e in range(1 << 40): pass"}
OF_KERNELS = "03.2", "04.2", "07.3"  # answers that return a kernel


def endless(answer: Callable, name: str) -> Callable:
    """Return an answer with the parameters of the right one, that never ends."""
    code = answer.__code__
    given = ", ".join(code.co_varnames[: code.co_argcount])
    text = f"def {answer.__name__}({given}):\n    {ENDLESS[name]}\n"
    file = f"<endless {answer.__name__} {name}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    scope: dict = {}
    exec(compile(text, file, "exec"), scope)
    return scope[answer.__name__]


def solved(answer: Callable) -> Callable:
    """Return the solution as a cell that a reader has run."""
    text = source.solution(answer)
    file = f"<solution {answer.__module__} {answer.__name__}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    scope = dict(answer.__globals__)
    exec(compile(text, file, "exec"), scope)
    return scope[answer.__name__]


def endless_kernel(answer: Callable, loop: str) -> Callable:
    """Return the solution with a loop without end at the beginning of the kernel that it makes."""
    lines = source.solution(answer).splitlines(keepends=True)
    at = max(i for i, line in enumerate(lines) if line.lstrip().startswith("def "))
    depth = len(lines[at]) - len(lines[at].lstrip()) + 4
    lines.insert(at + 1, f"{' ' * depth}{IN_KERNEL[loop]}\n")
    file = f"<endless kernel {answer.__module__} {loop}>"
    linecache.cache[file] = (len("".join(lines)), None, lines, file)
    scope = dict(answer.__globals__)
    exec(compile("".join(lines), file, "exec"), scope)
    return scope[answer.__name__]


def judged(name: str, answers: list[Callable]) -> str:
    """Return the diagnosis of answers, and print how long it took."""
    began = time.perf_counter()
    verdict = exercises.get(name).check(*answers)
    print(f"{name}: {verdict.diagnosis}, {time.perf_counter() - began:.1f} s", flush=True)
    return verdict.diagnosis


def main() -> None:
    """Judge all of them and write what was said."""
    out, chosen = Results(), sys.argv[2:] or exercises.names()
    builtins.input = None  # nobody answers
    for name in chosen:
        answers = exercises.get(name).task.answers
        out.note(f"{name} solved", lambda: judged(name, [solved(a) for a in answers]))
    for kind, name in JUDGED.items():
        if name in chosen:
            answers = exercises.get(name).task.answers
            for how in ENDLESS:
                out.note(f"{kind} {how}", lambda: judged(name, [endless(a, how) for a in answers]))
    for name in OF_KERNELS:
        for loop in IN_KERNEL if name in chosen else ():
            (answer,) = exercises.get(name).task.answers
            out.note(f"{name} kernel {loop}", lambda: judged(name, [endless_kernel(answer, loop)]))
    out.note("for ever", lambda: judged("01.2", [for_ever, for_ever, for_ever]))
    out.write(sys.argv[1])


if __name__ == "__main__":
    main()

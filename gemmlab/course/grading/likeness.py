"""Answers that are the same but for their names and comments, or that are the solution's."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from gemmlab.course.judging import source
from gemmlab.course.judging.exercise import Task

ENOUGH = 40  # nodes of a tree beyond the skeleton's: shorter answers are alike by themselves


@dataclass(frozen=True)
class Likeness:
    """A digest of functions without their names, and how many nodes their tree has."""

    digest: str
    size: int


def of(nodes: Iterable[ast.AST]) -> Likeness:
    """The likeness of these functions, in their order."""
    names: dict[str, str] = {}
    parts, size = [], 0
    for node in nodes:
        for part in _in_order(ast.parse(ast.unparse(node))):
            size += 1
            parts.append(_words(part, names))
    return Likeness(hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16], size)


def _in_order(node: ast.AST) -> Iterable[ast.AST]:
    """A tree's nodes without docstrings and annotations, which change nothing."""
    yield node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns"):
            continue
        parts = value if isinstance(value, list) else [value]
        if name == "body" and parts and _is_text(parts[0]):
            parts = parts[1:]
        for part in parts:
            if isinstance(part, ast.AST):
                yield from _in_order(part)


def _is_text(node: object) -> bool:
    constant = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return constant and isinstance(node.value.value, str)  # type: ignore[attr-defined]


def _words(node: ast.AST, names: dict[str, str]) -> str:
    """A node as text, with each name by the order in which names come."""
    words = [type(node).__name__]
    for name, value in ast.iter_fields(node):
        if name in ("id", "arg") or (name == "name" and isinstance(value, str)):
            words.append(names.setdefault(str(value), f"n{len(names)}"))
        elif not isinstance(value, (ast.AST, list)) and name not in ("kind", "type_comment"):
            words.append(repr(value))
    return " ".join(words)


def of_solution(task: Task) -> Likeness:
    """The likeness of an exercise's solution."""
    return of(ast.parse(source.solution(answer)).body[0] for answer in task.answers)


def enough(size: int, task: Task) -> bool:
    """Whether an answer is long enough for a likeness to say something."""
    skeletons = sum(
        sum(1 for _ in _in_order(ast.parse(source.skeleton(answer)))) for answer in task.answers
    )
    return size >= skeletons + ENOUGH

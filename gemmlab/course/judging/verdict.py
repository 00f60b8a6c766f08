"""Verdicts: the judgement of an answer, its diagnosis and the facts behind it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any

# Labels of the fact that names the case of a verdict.
FAILING, DRAWN_ANEW = "Smallest failing case", "A case drawn anew"
# Diagnoses that are none of an answer, in the words of a title.
_NO_ATTEMPT = {"not-attempted": "not attempted yet", "not-judged": "not judged"}


@dataclass(frozen=True)
class Diagnosis:
    """The explanation of a wrong answer.

    cause : the likely cause, one sentence
    question : the first hint, which turns the eye to the right place
    partial : the last hint, code or algebra with a gap
    """

    cause: str
    question: str
    partial: str = ""


@dataclass(frozen=True)
class Verdict:
    """The judgement of one attempt.

    passed : whether the answer is right
    diagnosis : "passed", or the id of what is wrong; "not-attempted" for an untouched skeleton,
        "not-judged" where the machine was too busy, so that nothing is said of the answer
    facts : (label, text) in the order in which they are read
    details : the same for programs: case, index, expected, got, block, threads, line, ...
    """

    exercise: str
    passed: bool
    diagnosis: str
    facts: tuple[tuple[str, str], ...]
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def attempted(self) -> bool:
        """Whether an answer was judged; an untouched skeleton counts as no attempt."""
        return self.diagnosis not in _NO_ATTEMPT

    @property
    def title(self) -> str:
        """The judgement in a few words."""
        state = "passed" if self.passed else _NO_ATTEMPT.get(self.diagnosis, "not passed")
        return f"Exercise {self.exercise}: {state}"

    @property
    def message(self) -> str:
        """The whole verdict as text, one fact a paragraph."""
        return "\n".join([self.title, *(f"{label}: {text}" for label, text in self.facts)])

    def __repr__(self) -> str:
        return self.message

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<dt><strong>{escape(label)}</strong></dt>"
            f'<dd style="white-space: pre-wrap">{escape(text)}</dd>'
            for label, text in self.facts
        )
        title = escape(self.title)
        return (
            f'<section role="status" aria-label="{title}">'
            f"<p><strong>{title}</strong></p><dl>{rows}</dl></section>"
        )


@dataclass(frozen=True)
class Finding:
    """A judge's diagnosis and the facts behind it; "passed" where nothing is wrong."""

    diagnosis: str
    facts: tuple[tuple[str, str], ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def anew(self) -> Finding:
        """The same, found in a case that was drawn anew and in no other."""
        facts = ((DRAWN_ANEW if label == FAILING else label, text) for label, text in self.facts)
        return replace(self, diagnosis="known-cases-only", facts=tuple(facts))

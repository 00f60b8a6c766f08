"""Sentences with numbers in a chapter's text, and the table that says what each number must be.

A chapter's table is the function `claims` of the module `claims` in its folder. It goes through the
text in order: `at` names a cell, `holds` a piece of its text whose numbers, `{}`, must equal
computed values, `tested` pieces whose numbers another test computes, and `given` those that define
or ask something, or name a case. A number that no piece covers fails, and so does one that differs
from what the table says.
"""

import importlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache

from tests.support.paths import ROOT

# Chapter -> its notebook; the appendix of chapter 12 is "12a".
NOTEBOOKS = {
    f.name[:2] + "a" * f.stem.endswith("appendix"): f
    for f in sorted((ROOT / "notebooks").glob("*.ipynb"))
}

_UP_TO_TWELVE = "two three four five six seven eight nine ten eleven twelve"
_LARGER = "thirteen:13 fifteen:15 sixteen:16 twenty:20 thirty:30 forty:40 fifty:50 sixty:60"
WHOLE = {word: i for i, word in enumerate(_UP_TO_TWELVE.split(), 2)}
WHOLE |= {word: int(i) for word, _, i in (pair.partition(":") for pair in _LARGER.split())}
WHOLE |= {"sixty-four": 64, "hundred": 100, "thousand": 1000, "twice": 2, "thrice": 3}
SHARES = {"half": 1 / 2, "third": 1 / 3, "quarter": 1 / 4, "fifth": 1 / 5, "sixth": 1 / 6}
SHARES |= {"eighth": 1 / 8, "tenth": 1 / 10, "fifteenth": 1 / 15}
FRACTIONS = SHARES | {f"{many} {part}s": WHOLE[many] * size
                      for many in ("two", "three", "five", "seven", "nine")
                      for part, size in SHARES.items()}  # fmt: skip

HELD_BY = "held by "

# A word of a number counts where it measures or compares: before a unit, "times", "as" or "of".
UNITS = (
    *("times", "percent", "bytes", "bits", "words", "digits", "numbers", "elements", "floats"),
    *("threads", "lanes", "warps", "blocks", "processors", "SMs", "schedulers", "units", "slots"),
    *("registers", "banks", "sectors", "lines", "requests", "wavefronts", "loads", "stores"),
    *("operations", "FMAs", "instructions", "cycles", "steps", "stages", "tiles", "waves", "sums"),
    *("rows", "columns", "launches", "products", "parts", "kernels", "rungs", "trips", "barriers"),
    *("microseconds", "programs", "TFLOP/s", "orders", "powers", "gaps", "copies", "passes"),
    *("splits", "matrices", "pairs", "groups"),
)
_WORDS = "|".join(sorted(map(re.escape, WHOLE), key=len, reverse=True))
_PARTS = "|".join(sorted(map(re.escape, FRACTIONS), key=len, reverse=True))
_DIGITS = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?"
_POWER = r"[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+|\^\{-?\d+\}|\^\d+"
_AFTER_A_PART = "of|the|as|a|an|its|that|more|less|wave|too|after"
NUMBER = re.compile(
    rf"(?<![\w.,^_])(?<![A-Za-z)]/)(?P<digits>{_DIGITS})(?P<power>{_POWER})?(?!\w)|(?<![\w-])(?:"
    rf"(?:an?\s+)?(?P<share>{_PARTS})(?=\s+\(?(?:{_AFTER_A_PART})\b|[.,])|(?P<twice>twice|thrice)|"
    rf"(?P<word>{_WORDS})(?=\s+(?:as|(?:[\w×-]+\s+)?(?:{'|'.join(UNITS)}))\b))(?![\w-])",
    re.IGNORECASE,
)
GREEK = {"alpha": "α", "beta": "β", "delta": "δ", "gamma": "γ", "varepsilon": "ε", "approx": "≈"}
SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")

# Names that end in a number, and are none.
NAMES = re.compile(
    r"\b(?:[Cc]hapters?|[Ss]ections?|[Ss]tages?|[Ee]xercises?|IEEE|predicate|CUDA)"
    r"\s+\d+(?:\.\d\b)?(?:(?:,| and| or| to| …)\s+\d+(?:\.\d)?\b)*"
    r"|(?<![\d.])0\d\.\d(?!\d)|\(1[0-2]\.[1-5]\)|Allow \d+ minutes"
)


def value(found: re.Match) -> float:
    """The number that a piece of text says."""
    if found["digits"]:
        base = float(found["digits"].replace(",", ""))
        power = (found["power"] or "").translate(SUPERSCRIPTS).strip("^{}")
        return base ** int(power) if power else base
    said = (found["word"] or found["twice"] or found["share"]).lower()
    return FRACTIONS.get(said) or WHOLE[said]


@dataclass(frozen=True)
class Near:
    """A computed value that a sentence says roughly: its number lies from `low` to `high` times."""

    value: float
    low: float
    high: float

    def __contains__(self, said: float) -> bool:
        ends = sorted((self.value * self.low, self.value * self.high))
        return ends[0] - 1e-9 <= said <= ends[1] + 1e-9


def about(number: float, within: float = 0.1) -> Near:
    """What "about" and "nearly as" allow."""
    return Near(number, 1 - within, 1 + within)


def over(number: float) -> Near:
    """What "more than" and "at least" allow: the sentence says less than the value, not far so."""
    return Near(number, 0.75, 1)


def under(number: float, far: float = 1.45) -> Near:
    """What "less than", "at most" and "nearly" allow: the sentence says up to `far` times more."""
    return Near(number, 1, far)


def agrees(found: re.Match, expected: float | Near) -> bool:
    """Whether a number is the expected one, rounded as the sentence rounds it."""
    said = value(found)
    if isinstance(expected, Near):
        return said in expected
    if found["share"]:
        return abs(said - expected) <= 0.05 * said
    if found["digits"] and not found["power"]:
        decimals = len(found["digits"].partition(".")[2])
        return abs(said - expected) <= 0.5000001 * 10.0**-decimals
    return abs(said - expected) <= 1e-9 * abs(said) or (
        not found["digits"] and said == round(expected)
    )


def cleaned(source: str) -> str:
    """A cell's sentences: without headings, code, displayed formulas, links and literature."""
    text = re.sub(r"<!-- chapters.*?<!-- end of chapters -->|<!--.*?-->", "", source, flags=re.S)
    text = re.sub(r"\*\*To read on.*", "", text, flags=re.S)
    text = re.sub(r"^(```+).*?^\1$|^\$\$.*?\$\$", "\n", text, flags=re.S | re.M)
    text = re.sub(r"\$\$.*?\$\$", "\n", text, flags=re.S)
    text = re.sub(r"^\s*#.*$|^\|[-:| ]+\|\s*$", "\n", text, flags=re.M)
    text = re.sub(r"`[^`\n]*`|<code>.*?</code>", lambda m: re.sub(r"\d", "#", m[0]), text)
    text = re.sub(r"\]\([^)]*\)", "]", text)
    text = re.sub(r"</?(?:details|summary)>", "\n\n", text)
    text = re.sub(r"</?\w+>|\*\*|\*|\\[;,!]", "", text)
    text = re.sub(r"\$([^$]*)\$", lambda m: formula(m[1]), text)
    text = re.sub(r"^\s*(?:\d\.|-|[a-z]\))\s+", "\n\n", text, flags=re.M)
    text = re.sub(r"^\|", "\n\n|", text, flags=re.M)
    blocks = (" ".join(block.split()) for block in re.split(r"\n\s*\n", text))
    return "\n".join(block for block in blocks if block)


def formula(text: str) -> str:
    """A formula within a sentence; digits that belong to its letters are no numbers of it."""
    for name, sign in (
        (r"\times", "×"),
        (r"\bmod", "mod"),
        (r"\cdot", "·"),
        (r"\le", "≤"),
        (r"\ge", "≥"),
    ):
        text = text.replace(name, sign)
    text = re.sub(r"\\(alpha|beta|delta|gamma|varepsilon|approx)", lambda m: GREEK[m[1]], text)
    text = re.sub(r"\\[dt]?frac(\d\d|\d?\w\b|\{[^{}]*\}\{[^{}]*\}|\d\{[^{}]*\})", "#", text)
    text = re.sub(r"\d(?=\^\{?-?[A-Za-z])", "#", text)
    text = re.sub(r"(?<!\d)([\^_])(\{-?\d+\}|\d)", r"\1#", text)
    return re.sub(r"(?<=[A-Za-z})])/?\d+|\d+(?=\s?\\?[A-Za-z(])", "#", text)


def sentences(text: str) -> Iterator[tuple[int, int]]:
    """Where each sentence of a cleaned cell begins and ends."""
    for block in re.finditer(r"[^\n]+", text):
        begin = block.start()
        for end in re.finditer(r"[.?!][)\"”]*\s+(?=[A-ZÅ\"“(`∂βα]|\d)", block[0]):
            yield begin, block.start() + end.end()
            begin = block.start() + end.end()
        yield begin, block.end()


def numbers(text: str) -> list[re.Match]:
    """The numbers of a cleaned cell; ends of names are none."""
    names = [m.span() for m in NAMES.finditer(text)]
    return [m for m in NUMBER.finditer(text)
            if not any(a <= m.start() < b for a, b in names)]  # fmt: skip


@dataclass(frozen=True)
class Claim:
    """A piece of a cell's text and the values of its numbers; `why` says what needs none."""

    cell: str
    piece: str
    values: tuple[float | Near, ...] = ()
    why: str = ""

    def __str__(self) -> str:
        return f"{self.cell}: “{self.piece}”"


@dataclass
class Claims:
    """The table of a chapter while it is written down."""

    of: list[Claim] = field(default_factory=list)
    cell: str = ""

    def at(self, cell: str) -> None:
        """What follows is about this cell."""
        self.cell = cell

    def holds(self, piece: str, *values: float | Near) -> None:
        """Each `{}` of this piece is the value of its place, rounded as the sentence rounds it."""
        if not values or piece.count("{}") != len(values):
            raise ValueError(f"{len(values)} values for “{piece}”, which has {piece.count('{}')}")
        self.of.append(Claim(self.cell, piece, values))

    def given(self, why: str, *pieces: str) -> None:
        """The numbers of these pieces are set or asked by the text; `why` says what they are."""
        self.of.extend(Claim(self.cell, piece, (), why) for piece in pieces)

    def tested(self, test: str, *pieces: str) -> None:
        """The numbers of these pieces stand in a test of this name, which computes them."""
        if not any(f"def {test}(" in text for text in _tests()):
            raise LookupError(f"no test is called {test!r}; it should hold {pieces}")
        self.of.extend(Claim(self.cell, piece, (), f"{HELD_BY}{test}") for piece in pieces)

    def asserted(self, *pieces: str) -> None:
        """The numbers of these pieces stand in an assertion of the table, just above."""
        self.of.extend(Claim(self.cell, piece, (), f"{HELD_BY}an assertion") for piece in pieces)

    def anywhere(self, why: str, *pieces: str) -> None:
        """These pieces name a case or a fact wherever they stand, and each stands somewhere."""
        self.of.extend(Claim("", piece, (), why) for piece in pieces)


@cache
def _tests() -> list[str]:
    """The sources of the tests that may hold a chapter's numbers."""
    folders = ("course", "explorers", "compiled", "model")
    return [f.read_text("utf-8") for d in folders for f in (ROOT / "tests" / d).rglob("test_*.py")]


@cache
def cells(chapter: str) -> dict[str, str]:
    """The cleaned texts of a chapter's Markdown cells, by the cells' names."""
    every = json.loads(NOTEBOOKS[chapter].read_text("utf-8"))["cells"]
    return {c["id"]: cleaned("".join(c["source"])) for c in every if c["cell_type"] == "markdown"}


@cache
def claims(chapter: str) -> tuple[Claim, ...]:
    """The table of a chapter, its values computed once."""
    (folder,) = (ROOT / "tests/course").glob(f"ch{chapter[:2]}_*")
    name = "claims" if chapter[2:] == "" else "claims_appendix"
    table = Claims()
    importlib.import_module(f"tests.course.{folder.name}.{name}").claims(table)
    return tuple(table.of)


@dataclass(frozen=True)
class Report:
    """What a chapter's table says of its text: faults, and sentences by how they are covered."""

    faults: list[str]
    held: int  # a number of theirs is computed here
    tested: int  # … or by an assertion beside, or a test that the table names
    given: int  # theirs define, ask or name a case
    uncovered: list[str]


def check(texts: dict[str, str], table: tuple[Claim, ...]) -> Report:
    """Hold the texts of cells against a table."""
    covered: dict[str, list[tuple[int, int, bool]]] = {cell: [] for cell in texts}
    faults = []
    for claim in table:
        places = [(cell, *place) for cell in ([claim.cell] if claim.cell else texts)
                  for place in _places(texts.get(cell, ""), claim)]  # fmt: skip
        if not places:
            faults.append(f"{claim} is not in the text")
        for cell, start, end, holes in places:
            covered[cell].append((start, end, HELD_BY in claim.why))
            for found, expected in zip(holes, claim.values, strict=True):
                covered[cell].append((*found.span(), True))
                if not agrees(found, expected):
                    faults.append(f"{claim} says {found[0]!r}, computed {expected}")
    counts = {"held": 0, "tested": 0, "given": 0}
    uncovered = []
    for cell, text in texts.items():
        spans, found = covered[cell], numbers(text)
        for begin, end in sentences(text):
            inside = [m for m in found if begin <= m.start() < end]
            over = [[span for span in spans if span[0] <= m.start() and m.end() <= span[1]]
                    for m in inside]  # fmt: skip
            bare = [m[0] for m, by in zip(inside, over, strict=True) if not by]
            if bare:
                uncovered.append(f"{cell}: {', '.join(bare)} in “{text[begin:end].strip()}”")
            elif any((*m.span(), True) in spans for m in inside):
                counts["held"] += 1
            elif any(tested for by in over for *_, tested in by):
                counts["tested"] += 1
            elif inside:
                counts["given"] += 1
    return Report(faults, **counts, uncovered=uncovered)


def _places(text: str, claim: Claim) -> Iterator[tuple[int, int, list[re.Match]]]:
    """Where a piece stands: its ends, and its numbers in the order of its holes."""
    first, *parts = claim.piece.split("{}") if claim.values else [claim.piece]
    at = 0
    while (start := text.find(first, at) if first else _first(text, at)) >= 0:
        end, holes = start + len(first), []
        for part in parts:
            found = NUMBER.match(text, end)
            if not found or not text.startswith(part, found.end()):
                break
            holes.append(found)
            end = found.end() + len(part)
        else:
            cut = re.match(r"[.,]?\d", text[end:]) and text[end - 1].isdigit()
            if not cut and not (text[start].isdigit() and re.search(r"[\d.]\Z", text[:start])):
                yield start, end, holes
        at = start + 1


def _first(text: str, at: int) -> int:
    """Where the next number begins, for a piece that begins with one."""
    found = NUMBER.search(text, at)
    return found.start() if found else -1


def changed(text: str, found: re.Match) -> str:
    """The text with one of its numbers made another."""
    number = found[0]
    if found["digits"]:
        first = next(i for i, c in enumerate(number) if c in "123456789" or c == "0")
        digit = int(number[first])
        other = number[:first] + str(digit - 2 if digit == 9 else digit + 1) + number[first + 1 :]
    else:
        said = next(found[kind] for kind in ("share", "twice", "word") if found[kind])
        words = [*WHOLE] if said.lower() in WHOLE else [*FRACTIONS]
        other = number.replace(said, words[(words.index(said.lower()) + 1) % len(words)])
    return text[: found.start()] + other + text[found.end() :]

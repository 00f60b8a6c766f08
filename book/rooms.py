"""Draw the rooms of the house, and who imports from whom: ``python -m book.rooms``.

A room is a folder or a module at the top of `gemmlab`, and `benchmarks`; an arrow is one room that
imports from another, however often. The rooms stand in an order in which every arrow points to the
left, if there is one. Imports that serve annotations alone (under ``TYPE_CHECKING``) count, too.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

from benchmarks import ROOT

PACKAGE = ROOT / "gemmlab"
PICTURE = ROOT / "book" / "images" / "rooms.png"
DOOR = "gemmlab"  # what `import gemmlab` itself is called among the rooms


def files() -> list[Path]:
    """The Python files of the library and of the benchmarks."""
    return sorted([*PACKAGE.rglob("*.py"), *(ROOT / "benchmarks").rglob("*.py")])


def room_of(path: Path) -> str:
    """The room that a file lies in."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return parts[0] if parts[0] == "benchmarks" else DOOR if parts[1] == "__init__" else parts[1]


def imports(text: str) -> Iterator[str]:
    """The rooms from which a program imports, one for each name."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module in ("gemmlab", "benchmarks"):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        else:
            continue
        for name in names:
            top, _, rest = name.partition(".")
            if top == "benchmarks":
                yield top
            elif top == "gemmlab":
                inside = rest.partition(".")[0]
                is_room = (PACKAGE / inside).is_dir() or (PACKAGE / f"{inside}.py").is_file()
                yield inside if inside and is_room else DOOR


@cache
def arrows() -> Counter[tuple[str, str]]:
    """How many names one room imports from another: (from, to) -> number."""
    found: Counter[tuple[str, str]] = Counter()
    for path in files():
        own = room_of(path)
        found.update((own, other) for other in imports(path.read_text("utf-8")) if other != own)
    return found


@cache
def rooms() -> list[str]:
    """The rooms, each to the right of all from which it imports.

    Raises ValueError where some import from each other in a circle.
    """
    needs: dict[str, set[str]] = {room_of(path): set() for path in files()}
    for own, other in arrows():
        needs[own].add(other)
    order: list[str] = []
    while len(order) < len(needs):
        ready = sorted(room for room, of in needs.items() if room not in order and of <= {*order})
        if not ready:
            left = ", ".join(sorted({*needs} - {*order}))
            raise ValueError(f"these rooms import from each other in a circle: {left}")
        order += ready
    return order


def lines() -> Counter[str]:
    """Lines of Python in each room."""
    found: Counter[str] = Counter()
    for path in files():
        found[room_of(path)] += path.read_text("utf-8").count("\n")
    return found


def draw() -> Figure:
    """The rooms from left to right, and below each the rooms from which it imports."""
    order, sizes, drawn = rooms(), lines(), arrows()
    figure = Figure(figsize=(9.6, 8.4), layout="constrained")
    ax = figure.subplots()
    at = {room: i for i, room in enumerate(order)}
    most = max(drawn.values())
    for (own, other), count in drawn.items():
        ax.scatter(at[other], at[own], s=20 + 260 * (count / most) ** 0.5, color="#0072B2")
    for i in range(len(order)):
        ax.plot([i, i], [i, len(order) - 0.5], color="#dddddd", linewidth=0.8, zorder=0)
        ax.plot([-0.5, i], [i, i], color="#dddddd", linewidth=0.8, zorder=0)
        ax.scatter(i, i, marker="s", s=70, color="#333333")
    ax.set_xticks(range(len(order)), order, rotation=90)
    ax.set_yticks(range(len(order)), [f"{room}  {sizes[room]:,}" for room in order])
    ax.invert_yaxis()
    ax.xaxis.tick_top()
    ax.set_xlabel("imports from …")
    ax.set_ylabel("room, and its lines of Python")
    ax.set_title(f"{len(order)} rooms, {len(drawn)} arrows: none points to the right", pad=14)
    for side in ("top", "right", "bottom", "left"):
        ax.spines[side].set_visible(False)
    ax.tick_params(length=0)
    return figure


def told() -> str:
    """The picture in words: each room, and from which it imports."""
    needs = {room: sorted(other for own, other in arrows() if own == room) for room in rooms()}
    return "; ".join(f"{room} from {', '.join(of) or 'none'}" for room, of in needs.items())


def main() -> None:
    """Write the picture, with its description in its file, and say what it shows."""
    matplotlib.use("Agg")
    draw().savefig(PICTURE, dpi=110, metadata={"Description": told()})
    print(f"{len(rooms())} rooms, {len(arrows())} arrows: {PICTURE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()

"""The chapters in another language: the catalogue of the site, put into copies of the notebooks.

Paragraphs, headings, items and cells of tables are replaced where the catalogue translates them.
Code, and whatever is not translated, stays as it is, and so does the sequence of cells.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from babel.messages import Catalog

HERE = Path(__file__).resolve().parent
INSTALLED = (HERE / "locale").is_dir()  # as pyproject.toml packs it
LOCALE = HERE / "locale" if INSTALLED else HERE.parent / "book" / "locale"
DOMAIN = "gemmlab"
# What stands before a paragraph in its line, and after it: marks of lists, headings and tables.
BEFORE = r"(?:(?<=\A)|(?<=\n)|(?<=\| )|(?<=<summary>))([ \t]*(?:[-*+] |\d+\. (?!\d)|#{1,6} |> )*)"
AFTER = r"(?=[ \t]*(?:\Z|\n|\||</summary>))"
FENCED = re.compile(r"(^```.*?^```[^\n]*$)", re.DOTALL | re.MULTILINE)


def languages() -> list[str]:
    """Return the languages that there is a catalogue of."""
    return sorted(path.parts[-3] for path in LOCALE.glob(f"*/LC_MESSAGES/{DOMAIN}.po"))


def catalogue(language: str) -> Catalog:
    """Read the catalogue of a language; ValueError where there is none."""
    from babel.messages.pofile import read_po

    if language not in languages():
        raise ValueError(
            f"there is no translation into {language!r}; there are: {', '.join(languages())}"
        )
    with (LOCALE / language / "LC_MESSAGES" / f"{DOMAIN}.po").open("rb") as file:
        return read_po(file, language, DOMAIN)


def sentences(told: Catalog) -> dict[str, str]:
    """Return what is translated: English -> the other language, without what is doubtful.

    A message is doubtful ("fuzzy") where the English one has changed since.
    """
    return {one.id: one.string for one in told if one.id and one.string and not one.fuzzy}


def text(source: str, translations: dict[str, str]) -> str:
    r"""Return a text in Markdown with its paragraphs translated.

    >>> text("## 1. Tiles\n\n- One\n  *tile*.", {"1. Tiles": "1\\. 瓦片", "One *tile*.": "瓦片"})
    '## 1\\. 瓦片\n\n- 瓦片'
    """
    longest = sorted(translations, key=len, reverse=True)
    known = "|".join(r"\s+".join(map(re.escape, one.split())) for one in longest)
    found = re.compile(f"{BEFORE}({known}){AFTER}") if known else None
    parts = FENCED.split(source)
    for i in range(0, len(parts) if found else 0, 2):  # every second part is code
        parts[i] = found.sub(lambda m: m[1] + translations[" ".join(m[2].split())], parts[i])
    return "".join(parts)


def notebook(chapter: Path, translations: dict[str, str]) -> bytes:
    """Return a chapter with its text translated, as the file of a notebook."""
    told = json.loads(chapter.read_text("utf-8"))
    for cell in told["cells"]:
        if cell["cell_type"] == "markdown":
            source = text("".join(cell["source"]), translations)
            cell["source"] = source.splitlines(keepends=True)
    return (json.dumps(told, ensure_ascii=False, indent=1) + "\n").encode()


def lay(chapters: Path, folder: Path, language: str) -> None:
    """Write all chapters into a folder, those that are translated in another language."""
    translations = sentences(catalogue(language))
    folder.mkdir(parents=True, exist_ok=True)
    for chapter in sorted(chapters.glob("*.ipynb")):
        (folder / chapter.name).write_bytes(notebook(chapter, translations))

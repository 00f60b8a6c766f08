"""A chapter's first use of each term is a link to the glossary.

This is done while pages are built: notebooks stay plain Markdown. No definition shows up by itself,
because it may answer what a chapter lets its reader predict.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from docutils import nodes
from sphinx.application import Sphinx

GLOSSARY = "glossary"
# Entries whose words chapters also use in another sense.
COMMON = {
    *("bias", "exponent-fraction", "footprint", "launch", "layout", "piece", "request", "residual"),
    *("stage", "tail", "throughput-duration", "weights-activations"),
}
CLOSED = (nodes.reference, nodes.literal, nodes.title, nodes.raw, nodes.math, nodes.table)


def known(glossary: nodes.document) -> dict[str, str]:
    """Return the terms of the glossary: name -> the anchor of its entry."""
    found = {}
    for term in glossary.findall(nodes.term):
        label = term["ids"][0]
        if label.removeprefix("term-") not in COMMON:
            found |= dict.fromkeys(names(term.astext()), label)
    return found


def names(term: str) -> list[str]:
    """Return the names in an entry; a translation has English ones in brackets, after its own.

    >>> names("dot product, outer product"), names("点积、外积（dot product, outer product）")
    (['dot product', 'outer product'], ['点积', '外积'])
    >>> names("FMA（融合乘加，fused multiply-add）")
    ['FMA', '融合乘加']
    """
    own, _, further = term.partition("（")
    others = [name for name in re.split("[，）]", further) if not name.isascii()]
    return [*re.split(", |、", own), *others]


def pattern(names: Iterable[str]) -> re.Pattern:
    """Return what finds names, also as plurals and at the start of a sentence; the longest first.

    >>> found = pattern(["tile", "tile quantization", "瓦片"])
    >>> [match[0] for match in found.finditer("Tiles, tile quantization, tiled; 小瓦片")]
    ['Tiles', 'tile quantization', '瓦片']
    """
    latin, others = [], ["(?!)"]
    for name in sorted(names, key=len, reverse=True):
        if name.isascii():
            start, rest = f"[{name[0].upper()}{name[0]}]", name[1:].split(" ")
            latin.append(start + r"\s+".join(map(re.escape, rest)))
        else:
            others.append(re.escape(name))
    words = rf"(?<![\w-])({'|'.join(latin)})(?:e?s)?(?![\w-])"
    return re.compile(f"{words}|({'|'.join(others)})", re.ASCII)


def is_open(text: nodes.Node) -> bool:
    """Whether a text is prose: no code, heading, table or link, and nothing that a cell printed."""
    node = text.parent if isinstance(text, nodes.Text) else None
    if node is None:
        return False
    while node.parent is not None:
        if isinstance(node, CLOSED) or "cell" in node.get("classes", ()):
            return False
        node = node.parent
    return True


def join_lines(chapter: nodes.document) -> None:
    """Make one text of lines that follow each other: a term may begin in one, end in the next."""
    for text in list(chapter.findall(is_open)):
        line, i = text.parent, text.parent.children.index(text)
        if i and isinstance(line[i - 1], nodes.Text):
            line[i - 1 : i + 1] = [nodes.Text(line[i - 1] + text)]


def link(app: Sphinx, chapter: nodes.document, page: str) -> None:
    """Make the first use of each term in a chapter a link."""
    if not page.startswith("notebooks/") or app.builder.format != "html":
        return
    terms = known(app.env.get_doctree(GLOSSARY))
    glossary, found = app.builder.get_relative_uri(page, GLOSSARY), pattern(terms)
    join_lines(chapter)
    for text in list(chapter.findall(is_open)):
        made, end = [], 0
        for match in found.finditer(text):
            used = " ".join((match[1] or match[2]).split())
            name = used if used in terms else used[0].lower() + used[1:]
            if name not in terms:
                continue  # it was linked before
            target = f"{glossary}#{terms.pop(name)}"
            shown = nodes.reference("", match[0], refuri=target, internal=True)
            shown["classes"] = ["gemmlab-term"]
            made += [nodes.Text(text[end : match.start()]), shown]
            end = match.end()
        if made:
            text.parent.replace(text, [*made, nodes.Text(text[end:])])

"""The site in other languages: a second run of Sphinx over the same pages, with a catalogue.

Sphinx replaces the paragraphs of a page that the catalogue translates (`book/locale`). What it does
not know is here: names of folds, what of a page stays English, the link to the same page in another
language, and a search that finds words of a language that puts no spaces between them.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from babel.messages.extract import extract_from_file
from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.locale import get_translation
from sphinx.search.zh import SearchChinese
from sphinx.transforms import SphinxTransform
from sphinx.util.i18n import CatalogInfo

from lab import translated

BOOK = Path(__file__).resolve().parent
# language of Sphinx -> its name in itself, what HTML calls it, and the folder of its pages
LANGUAGES = {"en": ("English", "en", ""), "zh_CN": ("简体中文", "zh-CN", "zh/")}
FOLD = re.compile(r"(.*<summary>)(.*?)(</summary>.*)", re.DOTALL)
SCRIPTS = "_static/names.js", "_static/live/live.js"  # which have words of their own
# language -> pages that are translated as a whole, where others have a title. Name one to begin it.
PAGES = {
    "zh_CN": (
        *("index", "glossary", "translating"),
        *("notebooks/00_start_here", "notebooks/01_what_is_gemm"),
    ),
}
_ = get_translation(translated.DOMAIN)
# What MyST-NB writes on the folds of cells.
FOLDS = (
    *(_("Show code cell source"), _("Hide code cell source")),
    *(_("Show code cell output"), _("Hide code cell output")),
)


class Translatable(SphinxTransform):
    """Says what of a page is translated: names of folds are, formulas and results are not."""

    default_priority = 15  # before Sphinx translates

    def apply(self, **_: Any) -> None:
        """Mark the page that was read, if it is to be translated or its text is wanted."""
        if self.config.language == "en" and self.app.builder.name != "gettext":
            return
        for english in self.english():
            english["translatable"] = False
        for fold in list(self.document.findall(nodes.raw)):
            if fold.get("translatable", True) is False or not FOLD.match(fold.astext()):
                continue
            before, name, after = FOLD.match(fold.astext()).groups()
            named = nodes.inline(name, html.unescape(name), translatable=True, fold=(before, after))
            named.source, named.line = self.document["source"], fold.line
            fold.replace_self(named)

    def english(self) -> Iterator[nodes.TextElement]:
        """What stays English: formulas, what cells of chapters print, pages but for a title."""
        page, language = self.env.docname, self.config.language
        if language != "en" and page not in PAGES[language]:
            title = next(iter(self.document.findall(nodes.title)), None)
            yield from (node for node in self.document.findall(has_text) if node is not title)
        yield from self.document.findall(nodes.math_block)
        if page.startswith("notebooks/"):
            for cell in self.document.findall(is_result):
                yield from cell.findall(has_text)  # films and pictures, too


def close_folds(app: Sphinx, doctree: nodes.document) -> None:
    """Put the names of folds, which are translated by now, back into their HTML."""
    if app.builder.name == "gettext":
        return
    for named in list(doctree.findall(lambda node: isinstance(node, nodes.inline))):
        if named.get("fold"):
            before, after = named["fold"]
            text = f"{before}{html.escape(named.astext(), quote=False)}{after}"
            named.replace_self(nodes.raw("", text, format="html"))


def has_text(node: nodes.Node) -> bool:
    """Whether a node may be translated: paragraphs and the like, not what they are made of."""
    whole = not isinstance(node, nodes.Inline) or isinstance(node, nodes.raw)
    return isinstance(node, nodes.TextElement) and whole


def is_result(node: nodes.Node) -> bool:
    """Whether a node holds what a cell has put out."""
    return isinstance(node, nodes.container) and "cell_output" in node["classes"]


class Pairs(SearchChinese):
    """Chinese is searched for by its pairs of characters, which needs no dictionary of words."""

    language_name = "English"  # Sphinx 9.0 makes the name of the script's stemmer of it
    js_splitter_code = """
var splitQuery = (query) => (query.match(/[\\u4e00-\\u9fff]+|[\\p{Letter}\\p{Number}_]+/gu) ?? [])
  .flatMap((run) => /^[\\u4e00-\\u9fff]{3,}$/.test(run)
    ? Array.from({ length: run.length - 1 }, (_, i) => run.slice(i, i + 2)) : [run]);
"""

    def split(self, input: str) -> list[str]:
        """Return the words of a text: those in Latin letters, and all pairs of characters.

        >>> Pairs({}).split("在共享内存中的 tile")
        ['tile', '在共', '共享', '享内', '内存', '存中', '中的']
        """
        runs = re.findall(r"[\u4e00-\u9fff]+", input)
        return super().split(input) + [a + b for run in runs for a, b in pairwise(run)]


def compile_catalogue(app: Sphinx, config: Config) -> None:
    """Make the catalogue ready for the site's own words, before the pages are read."""
    told = CatalogInfo(
        str(BOOK / "locale" / config.language / "LC_MESSAGES"), translated.DOMAIN, "utf-8"
    )
    if config.language != "en":
        told.write_mo(config.language)  # without what is doubtful
    app.add_message_catalog(translated.DOMAIN, str(BOOK / "locale"))


def name_parts(_app: Sphinx, doctree: nodes.document) -> None:
    """Translate the captions of the sidebar, which are read from no page."""
    for toctree in doctree.findall(addnodes.toctree):
        caption = toctree.get("caption")
        if caption:
            toctree["caption"] = str(_(caption))


def offer(
    app: Sphinx, page: str, _template: str, context: dict, tree: nodes.document | None
) -> None:
    """Lead to this page in the other languages, and say what of it stays English."""
    own = app.config.language
    up = context["content_root"] + "../" * bool(LANGUAGES[own][2])
    context["languages"] = [
        {"name": name, "lang": lang, "url": f"{up}{folder}{page}.html"}
        for language, (name, lang, folder) in LANGUAGES.items()
        if language != own
    ]
    if own != "en":
        told = {one: str(_(one)) for one in spoken()}
        words = {"locale": own, "messages": told, "plural_expr": "0"}
        app.add_js_file(None, body=f"Documentation.addTranslations({json.dumps(words)});")
    if own != "en" and tree is not None:
        whole = page in PAGES[own]
        context["body"] = marked(context["body"], page, whole, context["pathto"])


@cache
def spoken() -> list[str]:
    """Return the words that scripts of the site put into pages."""
    found = (extract_from_file("javascript", BOOK / file, keywords={"_": None}) for file in SCRIPTS)
    return [message for messages in found for _, message, _, _ in messages]


def marked(body: str, page: str, whole: bool, pathto: Any) -> str:
    """Return a page with a line that says what stays English, and with that marked as English."""
    body = re.sub(r"(?:Show|Hide) code cell \w+", lambda fold: str(_(fold[0])), body)
    if not whole:
        told = _("This page is not translated yet, so you read it in English.")
        body = re.sub(
            r"(?s)(?<=</h1>)(.*)(?=</section>)", r'<div lang="en">\1</div>', body, count=1
        )
    elif page.startswith("notebooks/"):
        told = _("Code, its comments and what it prints stay in English.")
        body = body.replace('<div class="cell ', '<div lang="en" class="cell ')
    else:
        return body.replace('<div class="gemmlab-film"', '<div lang="en" class="gemmlab-film"')
    help_out = _("How to help")
    line = (
        f'<p class="gemmlab-translated">{told} <a href="{pathto("translating")}">{help_out}</a></p>'
    )
    return body.replace("</h1>", f"</h1>{line}", 1)


def hand_out(app: Sphinx, error: Exception | None) -> None:
    """Let the buttons of chapters download the translated notebooks."""
    if not error and app.config.language != "en" and app.builder.name == "html":
        sources = Path(app.outdir) / "_sources" / "notebooks"
        translated.lay(BOOK.parent / "notebooks", sources, app.config.language)


def setup(app: Sphinx, other: bool) -> None:
    """Connect all that translates a page; `other` is whether there are pages in two languages."""
    app.add_transform(Translatable)
    app.connect("config-inited", compile_catalogue)
    app.connect("doctree-read", close_folds)
    app.connect("doctree-read", name_parts, priority=900)
    app.connect("build-finished", hand_out)
    app.add_search_language(Pairs)
    if other:
        app.connect("html-page-context", offer, priority=400)  # the theme drops empty parts at 500

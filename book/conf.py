"""The site: Sphinx with MyST-NB; the chapters are the notebooks of ../notebooks, executed."""

import filecmp
import os
import re
import shutil
import sys
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.errors import SphinxError

BOOK = Path(__file__).resolve().parent
CHAPTERS = BOOK.parent / "notebooks"
sys.path.append(str(BOOK.parent))

from book import executed, film, languages, outside, repository, terms  # noqa: E402
from gemmlab.course import course_map  # noqa: E402
from lab import translated  # noqa: E402

_ = languages._  # the site's own words in the language that is built


def copy_chapters(source: Path, target: Path) -> None:
    """Bring `target` to the state of `source`: Sphinx reads only below its own directory.

    Copies, because Windows makes no symbolic links without a privilege; an unchanged file keeps
    its date, so that Sphinx can tell what is new.
    """
    target.mkdir(exist_ok=True)
    wanted = {path.name: path for path in source.glob("*.ipynb")}
    for stale in set(target.glob("*.ipynb")) - {target / name for name in wanted}:
        stale.unlink()
    for name, path in wanted.items():
        if not (target / name).exists() or not filecmp.cmp(path, target / name, shallow=False):
            shutil.copy2(path, target / name)


def ipython_for_films(folder: Path, ends: bool) -> Path:
    """An IPython folder in which every kernel starts by letting explorers show films.

    ends : films have the ends of each control alone, as a preview's do
    """
    start = folder / "profile_default" / "startup" / "films.py"
    start.parent.mkdir(parents=True, exist_ok=True)
    start.write_text(
        "import sys\n"
        f"sys.path.append({str(BOOK.parent)!r})\n"
        "import book.film\n"
        f"book.film.show_films(ends={ends})\n"
        "del book, sys\n",
        "utf-8",
    )
    # Kernels warn of eavesdroppers on TCP: they listen on this machine's loopback alone.
    quiet = "c.IPKernelApp.log_level = 'ERROR'\n"
    (start.parents[1] / "ipython_kernel_config.py").write_text(quiet, "utf-8")
    return folder


def start_with_vectors(folder: Path) -> None:
    """Let every kernel keep figures as vectors, too, which are what is printed."""
    start = folder / "profile_default" / "startup" / "vectors.py"
    start.write_text("import book.vectors\nbook.vectors.keep()\ndel book\n", "utf-8")


def forget_widgets(app: Sphinx, _doctree: object) -> None:
    """Leave the state of widgets out of a page: films stand for them, and need no script of it."""
    app.env.nb_metadata.get(app.env.docname, {}).pop("js_files", None)


def join_formulas(_app: Sphinx, doctree: nodes.document) -> None:
    """Keep a formula and the comma or bracket that touches it on one line.

    Browsers break a line on either side of a formula, whatever stands there.
    """
    for formula in list(doctree.findall(nodes.math)):
        line = formula.parent
        i = line.index(formula)
        before, after = line[i - 1] if i else None, line[i + 1] if i + 1 < len(line) else None
        joined = nodes.inline(classes=["joined"])
        formula.replace_self(joined)
        if isinstance(before, nodes.Text):
            start = re.search(r"[^\s一-鿿]*$", before).start()  # Chinese has no spaces
            joined += nodes.Text(before[start:])
            line[i - 1] = nodes.Text(before[:start])
        joined += formula
        if isinstance(after, nodes.Text):
            end = re.match(r"[^\s一-鿿]*", after).end()
            joined += nodes.Text(after[:end])
            line[i + 1] = nodes.Text(after[end:])


def offer_machines(_app: Sphinx, page: str, _template: str, context: dict, _tree: object) -> None:
    """Put the buttons for Colab and Binder beside those of each chapter."""
    repository.spread_launches(context, page.startswith("notebooks/"))


def name_repository(_app: Sphinx, _page: str, source: list[str]) -> None:
    """Put the address of the repository where a page has a place for it."""
    source[0] = repository.named(source[0])


def indent_definitions(_app: Sphinx, page: str, source: list[str]) -> None:
    """Write the glossary's definitions as Sphinx reads them: MyST's own form is a list of them."""
    if page == "glossary":
        source[0] = re.sub(r"^: ", "  ", source[0], flags=re.MULTILINE)


def offer_to_run(app: Sphinx, page: str, _template: str, context: dict, _doctree: object) -> None:
    """Put a button on each chapter that runs its notebook in the browser, beside the pages."""
    if page.startswith("notebooks/") and os.environ.get("GEMMLAB_LIVE"):
        name = page.removeprefix("notebooks/")
        language = app.config.language
        live = "../lite" if language == "en" else "../../lite"
        folder = "" if language == "en" else f"{language}/"
        button = {
            "type": "link",
            "url": f"{live}/notebooks/index.html?path={folder}{name}.ipynb",
            "text": _("Run here"),
            "tooltip": _(
                "Run this chapter in this browser: Python comes along (30 MB), nothing is "
                "installed, and what you write stays here"
            ),
            "icon": "fas fa-play",
            "label": "run-here",
        }
        context["header_buttons"].insert(0, button)


def look_through(app: Sphinx, error: Exception | None) -> None:
    """Fail the build where a page fetches from elsewhere, or an explorer has no film."""
    if error:
        return
    site = Path(app.outdir)
    faults = [f"{page} fetches from elsewhere: {url}" for page, url in outside.requests(site)]
    faults += [f"{page} shows a widget as text" for page in film.missing(site)]
    if faults:
        raise SphinxError("\n".join(faults))


def setup(app: Sphinx) -> None:
    app.connect("doctree-read", forget_widgets)
    app.connect("doctree-read", join_formulas)
    app.connect("source-read", name_repository)
    app.connect("source-read", indent_definitions)
    app.connect("doctree-resolved", terms.link)
    app.connect("html-page-context", offer_machines, priority=550)  # after the theme's own buttons
    app.connect("html-page-context", offer_to_run, priority=600)  # and before those
    app.connect("build-finished", look_through)
    languages.setup(app, other=bool(os.environ.get("GEMMLAB_TRANSLATED")))


copy_chapters(CHAPTERS, BOOK / "notebooks")
PREVIEW = bool(os.environ.get("GEMMLAB_PREVIEW"))
IPYTHON = ipython_for_films(BOOK / "_build" / "ipython", PREVIEW)
start_with_vectors(IPYTHON)
os.environ["IPYTHONDIR"] = str(IPYTHON)

project = "gemmlab"
author = "gemmlab contributors"
copyright = "2026, gemmlab contributors. Text: CC BY 4.0. Code: BSD-3-Clause"

extensions = [
    "myst_nb",
    "sphinx_external_toc",
    "sphinx_design",
    "sphinx_copybutton",
    "sphinx-mathjax-offline",  # formulas without a content delivery network
    "sphinx.ext.githubpages",  # .nojekyll, or GitHub leaves out folders such as _static
]
exclude_patterns = ["_build", "**/.ipynb_checkpoints"]
external_toc_path = "_toc.yml"

# One catalogue for the whole site: pages share titles and questions of chapters.
language = "en"
locale_dirs = ["locale"]
gettext_compact = translated.DOMAIN

# The cache is keyed by the cells alone, and its folder by all else that outputs depend on.
nb_execution_mode = "cache"
nb_execution_cache_path = str(executed.folder(BOOK / "_build" / "executed", IPYTHON))
nb_execution_timeout = 300
nb_execution_show_tb = True
nb_merge_streams = True
nb_output_stderr = "error"  # a warning in a cell fails the build, and is shown where it was made
nb_mime_priority_overrides = [("*", "application/vnd.jupyter.widget-view+json", None)]
nb_render_markdown_format = "myst"  # tables and formulas in the outputs of cells

myst_enable_extensions = ["amsmath", "attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

html_theme = "sphinx_book_theme"
html_title = "gemmlab"
html_static_path = ["_static", str(course_map.STYLE)]
templates_path = ["_templates"]
html_favicon = "_static/icon.svg"
html_css_files = ["gemmlab.css", "print.css", course_map.STYLE.name]
html_context = {"default_mode": "auto"}  # light or dark, as the reader's system has it
html_js_files = [("film.js", {"defer": "defer"}), ("names.js", {"defer": "defer"})]
if os.environ.get("GEMMLAB_LIVE"):  # explorers come alive in the page: see `_static/live`
    html_js_files.append(("live/progress.js", {"type": "module"}))
    html_js_files.append(("live/live.js", {"type": "module"}))
html_search_scorer = str(BOOK / "scorer.js")  # chapters before decisions
html_theme_options = {
    "use_download_button": True,
    "use_fullscreen_button": False,
    "show_toc_level": 2,
    "navbar_persistent": [],  # the sidebar has the search
    "article_header_end": ["language", "article-header-buttons"],
    **repository.theme_options(),
}

"""The site: Sphinx with MyST-NB; the chapters are the notebooks of ../notebooks, executed."""

import filecmp
import shutil
from pathlib import Path

BOOK = Path(__file__).resolve().parent
CHAPTERS = BOOK.parent / "notebooks"


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


copy_chapters(CHAPTERS, BOOK / "notebooks")

project = "gemmlab"
author = "gemmlab contributors"
copyright = "2026, gemmlab contributors. Text: CC BY 4.0. Code: BSD-3-Clause"

extensions = [
    "myst_nb",
    "sphinx_external_toc",
    "sphinx_design",
    "sphinx_copybutton",
    "sphinx-mathjax-offline",  # formulas without a content delivery network
]
exclude_patterns = ["_build", "**/.ipynb_checkpoints"]
external_toc_path = "_toc.yml"

# Every page is executed anew: a cache keyed by the cells would not see a change in gemmlab.
nb_execution_mode = "force"
nb_execution_timeout = 300
nb_execution_show_tb = True
nb_merge_streams = True
nb_render_markdown_format = "myst"  # tables and formulas in the outputs of cells

myst_enable_extensions = ["amsmath", "attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

html_theme = "sphinx_book_theme"
html_title = "gemmlab"
html_static_path = ["_static"]
html_css_files = ["gemmlab.css"]
html_theme_options = {
    "use_download_button": True,
    "use_fullscreen_button": False,
    "show_toc_level": 2,
    "navbar_persistent": [],  # the sidebar has the search
}

"""Jupyter Book 1 builds this book with the settings of conf.py: an extension that takes them over.

Jupyter Book writes settings of its own and does not read conf.py. Here each setting of conf.py
takes their place before any other extension has seen them, and conf.py's own steps are connected.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.config import Config

sys.path.append(str(Path(__file__).resolve().parents[1]))

from book import conf

# What belongs to Jupyter Book: it has loaded extensions and found the pages before.
OF_JUPYTER_BOOK = {"extensions", "exclude_patterns", "external_toc_path"}


def settings(config: Config) -> dict[str, Any]:
    """The settings of conf.py that Sphinx and its extensions know: name -> value."""
    given = {name: value for name, value in vars(conf).items() if name in config.values}
    return {name: value for name, value in given.items() if name not in OF_JUPYTER_BOOK}


def take_over(_app: Sphinx, config: Config) -> None:
    """Put the settings of conf.py in the place of Jupyter Book's."""
    for name, value in settings(config).items():
        config[name] = value


def setup(app: Sphinx) -> dict[str, Any]:
    """Load what conf.py loads, and let its settings and its steps be the book's."""
    for extension in conf.extensions:
        app.setup_extension(extension)
    app.connect("config-inited", take_over, priority=1)
    conf.setup(app)
    return {"parallel_read_safe": True}

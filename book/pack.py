"""Packs: what explorers need in a page of the book, in two files that are read in seconds.

A page could take the wheels that the live site has. It takes twice as long: a wheel brings tests,
fonts and examples along, and sources that Python compiles anew at each visit. Packs leave out what
explorers never import, and are compiled by the Python that will read them, which Node runs here.
One has the libraries, which Python imports while the other comes, and which a browser keeps when
gemmlab changes.
"""

from __future__ import annotations

import re
import shutil
import zipfile
from pathlib import Path

PACKS = {
    "libraries": (
        "numpy", "matplotlib", "contourpy", "kiwisolver", "pillow", "cycler", "python-dateutil",
        "six", "packaging", "pyparsing", "ipywidgets", "traitlets", "comm", "typing-extensions",
    ),
    "gemmlab": ("gemmlab",),
}  # fmt: skip
# What of these no explorer needs. Folders anywhere; kinds of files; fonts, and compiled modules.
FOLDERS = "tests? sample_data pdfcorefonts afm images include pkgconfig f2py distutils course lab"
KINDS = "pyi h c pxd a pyf src f90 f"
PARTS = r"zoneinfo\.tar\.gz STIX cm[a-z]+\d DejaVuSerif DejaVuSansMono DejaVuSansDisplay "
PARTS += r"DejaVuSans-BoldOblique _tkagg\. _webp\. _imagingft\. _qhull\. (?<!Png)ImagePlugin\.py "
PARTS += r"backend_(?!agg|bases|managers|registry|tools|template) web_backend qt_editor"
LEFT_OUT = re.compile(
    rf"/({'|'.join(FOLDERS.split())})/|\.({'|'.join(KINDS.split())})$|\.dist-info/"
    rf"|{'|'.join(PARTS.split())}"
)


def unpacked(wheels: list[Path], folder: Path) -> None:
    """Unpack what explorers need of wheels into a folder, which is emptied first."""
    shutil.rmtree(folder, ignore_errors=True)
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as files:
            names = [name for name in files.namelist() if not LEFT_OUT.search(f"/{name}")]
            files.extractall(folder, names)

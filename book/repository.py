"""Where the course is published: the address of its repository, from one place, and what follows.

The place is `Repository` among the addresses of pyproject.toml, or, for a fork, the environment
variable `GEMMLAB_REPOSITORY`. Where neither is given, no page has a button that needs one.
"""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
KNOWN = r"https://(?:github|gitlab|bitbucket)\.(?:com|org)/[\w.-]+/[\w.-]+"
BINDER, COLAB = "https://mybinder.org", "https://colab.research.google.com"
PLACEHOLDER = "ADDRESS-OF-THE-REPOSITORY"  # stands in pages for the address
SIGNS = {"Colab": "fas fa-infinity", "Binder": "fas fa-rocket"}  # the theme's own are for a list
TOLD = {
    "Colab": "Run this chapter on a machine of Google; a first cell installs gemmlab: see Install",
    "Binder": "Run this chapter on a machine of mybinder.org, which takes minutes to start",
}


def address() -> str:
    """Return the address of the repository, or "" where none is given.

    Raises ValueError for an address of which no button can be made.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    given = os.environ.get("GEMMLAB_REPOSITORY") or project.get("urls", {}).get("Repository", "")
    found = given.strip().rstrip("/").removesuffix(".git")
    if found and not re.fullmatch(KNOWN, found):
        raise ValueError(
            f"the repository's address is {given!r}; buttons are made for addresses such as "
            "https://github.com/OWNER/NAME, on github.com, gitlab.com or bitbucket.org"
        )
    return found


def theme_options() -> dict[str, Any]:
    """Return the options by which the theme makes buttons; none without an address."""
    url = address()
    if not url:
        return {}
    launch = {"notebook_interface": "jupyterlab", "binderhub_url": BINDER}
    if "github.com" in url:  # Colab opens notebooks of no other
        launch["colab_url"] = COLAB
    return {
        "repository_url": url,
        "repository_branch": os.environ.get("GEMMLAB_BRANCH") or "main",
        "use_repository_button": True,
        "launch_buttons": launch,
    }


def spread_launches(context: dict[str, Any], chapter: bool) -> None:
    """Put the theme's buttons for Colab and Binder beside the others of a chapter, with words.

    The theme folds them, and makes them for every page with code. Other pages than chapters lie in
    the folder `book`, where they are no notebooks: those lose them.
    """
    buttons = context["header_buttons"]
    for group in [button for button in buttons if button.get("label") == "launch-buttons"]:
        buttons.remove(group)
        if chapter:
            made = {button["text"]: button for button in group["buttons"]}
            buttons[:0] = [
                made[name] | {"tooltip": tooltip, "icon": SIGNS[name], "label": name.lower()}
                for name, tooltip in TOLD.items()
                if name in made
            ]


def named(text: str) -> str:
    """Return a page's text with the repository's address in its place, where there is one."""
    return text.replace(PLACEHOLDER, address() or PLACEHOLDER)

"""Buttons that open a chapter on Colab and Binder: the addresses that come out of one setting."""

from types import SimpleNamespace

import pytest

from book import repository
from tests.support.paths import ROOT

CHAPTER = "notebooks/06_register_tiles"
GITHUB, GITLAB = "https://github.com/owner/course", "https://gitlab.com/owner/course"


@pytest.fixture
def published(monkeypatch):
    """A function: the address of a repository -> what environment and project give."""

    def at(url, branch=""):
        monkeypatch.setenv("GEMMLAB_REPOSITORY", url)
        monkeypatch.setenv("GEMMLAB_BRANCH", branch)

    return at


class Config(SimpleNamespace):
    """Sphinx's settings, as attributes and as items."""

    def __getitem__(self, name):
        return getattr(self, name)


def buttons(page):
    """The buttons of a page, as the theme makes them and `spread_launches` spreads them."""
    theme = pytest.importorskip("sphinx_book_theme.header_buttons")
    launch = pytest.importorskip("sphinx_book_theme.header_buttons.launch")
    options = repository.theme_options()
    env = SimpleNamespace(doc2path=lambda page: f"{page}.ipynb", metadata={page: {}})
    config = Config(html_theme_options=options, html_context={})
    builder = SimpleNamespace(theme_options=options)
    app = SimpleNamespace(env=env, config=config, builder=builder)
    theme.update_context_with_repository_info(app)
    own = {"label": "download-buttons", "text": "download"}
    context = config.html_context | {
        "pagename": page,
        "page_source_suffix": ".ipynb",
        "sourcename": f"{page}.ipynb",
        "header_buttons": [own],
    }
    launch.add_launch_buttons(app, page, "page.html", context, None)
    repository.spread_launches(context, page.startswith("notebooks/"))
    return {button["text"]: button.get("url") for button in context["header_buttons"]}


def test_a_chapter_opens_on_colab_and_on_binder(published):
    published(GITHUB)
    assert buttons(CHAPTER) == {
        "Colab": f"https://colab.research.google.com/github/owner/course/blob/main/{CHAPTER}.ipynb",
        "Binder": f"https://mybinder.org/v2/gh/owner/course/main?urlpath=lab/tree/{CHAPTER}.ipynb",
        "download": None,
    }
    assert (ROOT / f"{CHAPTER}.ipynb").is_file()  # a path from the top of the repository


def test_another_branch_and_an_address_as_git_clones_it(published):
    published(f"{GITHUB}.git/", "2027")
    assert "/blob/2027/notebooks" in buttons(CHAPTER)["Colab"]
    assert "/gh/owner/course/2027?" in buttons(CHAPTER)["Binder"]


def test_colab_opens_nothing_of_gitlab(published):
    published(GITLAB)
    found = buttons(CHAPTER)
    assert list(found) == ["Binder", "download"]
    assert found["Binder"].startswith("https://mybinder.org/v2/gl/owner%2Fcourse/main?")


def test_pages_that_are_no_notebooks_have_no_such_button(published):
    published(GITHUB)
    assert buttons("index") == {"download": None}


def test_without_an_address_there_is_no_button(published, monkeypatch):
    published("")
    monkeypatch.setattr(repository, "ROOT", ROOT / "tests" / "project")
    monkeypatch.setattr(repository.tomllib, "loads", lambda _: {"project": {"name": "gemmlab"}})
    monkeypatch.setattr(repository.Path, "read_text", lambda *_: "")
    assert repository.theme_options() == {}
    assert repository.named(f"git+{repository.PLACEHOLDER}") == f"git+{repository.PLACEHOLDER}"


@pytest.mark.parametrize("url", ["course", "git@github.com:owner/course.git", f"{GITHUB}/tree/x"])
def test_an_address_of_which_no_button_can_be_made_is_refused(published, url):
    published(url)
    with pytest.raises(ValueError, match=r"https://github.com/OWNER/NAME"):
        repository.theme_options()


def test_how_to_install_names_the_address(published):
    page = (ROOT / "book" / "install.md").read_text("utf-8")
    assert f"%pip install git+{repository.PLACEHOLDER}\n" in page
    published(GITHUB)
    assert f"%pip install git+{GITHUB}\n" in repository.named(page)

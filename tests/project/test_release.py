"""What a release needs, and what stands on the page that says how to cite and to share."""

import json
import re
import zipfile

import pytest
import yaml

from book import release
from tests.support.paths import ROOT

TEXTS = {
    "pyproject.toml": '[project]\nversion = "1.2.0"\n',
    "CHANGELOG.md": "# Changelog\n\n## [Unreleased]\n\n## [1.2.0] - 2027-01-31\n",
    "CITATION.cff": "version: 1.2.0\ndate-released: 2027-01-31\n",
}
CFF = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
PAGE = (ROOT / "book" / "share.md").read_text("utf-8")


def test_a_tree_that_is_ready_has_no_fault():
    assert list(release.faults(TEXTS, "", "v1.1.0\n")) == []


@pytest.mark.parametrize(
    ("changed", "status", "tags", "fault"),
    [
        ({}, " M run.py\n", "", "not committed:\n M run.py"),
        ({}, "", "v1.1.0\nv1.2.0\n", "there is a tag v1.2.0"),
        ({"CHANGELOG.md": "## [1.2.0]"}, "", "", "no line '## [1.2.0] - YEAR-MONTH-DAY'"),
        ({"CITATION.cff": "version: 1.1.0\ndate-released: 2027-01-31"}, "", "", "of version 1.1.0"),
        ({"CITATION.cff": "version: 1.2.0"}, "", "", "needs 'date-released: 2027-01-31'"),
    ],
)
def test_what_is_not_ready_is_said(changed, status, tags, fault):
    (found,) = release.faults(TEXTS | changed, status, tags)
    assert fault in found


def test_wheels_of_the_same_files_are_told_from_others(tmp_path):
    paths = [tmp_path / f"{number}.whl" for number in range(3)]
    for number, path in enumerate(paths):
        with zipfile.ZipFile(path, "w") as files:
            files.writestr("gemmlab/__init__.py", "0" if number < 2 else "1")
            files.writestr("gemmlab.dist-info/RECORD", str(number))
    assert release.same_files(*paths[:2])
    assert not release.same_files(*paths[1:])


def test_the_citation_is_of_this_package():
    """`run.py release` asks cffconvert, which has the whole schema of version 1.2.0."""
    assert CFF["cff-version"] == "1.2.0"
    assert CFF.keys() >= {"authors", "message", "title"}
    assert CFF["version"] == release.version()


def test_the_page_cites_what_the_file_says():
    [entry] = re.findall(r"```bibtex\n(.+?)```", PAGE, re.DOTALL)
    fields = dict(re.findall(r"^  (\w+) = \{+(.+?)\}+,?$", entry, re.MULTILINE))
    assert fields["title"] == CFF["title"]
    assert fields["version"] == CFF["version"]
    assert fields["author"] == CFF["authors"][0]["name"]
    [sentence] = re.findall(r"^> (.+)$", PAGE, re.MULTILINE)
    for part in (CFF["authors"][0]["name"], CFF["title"], f"Version {CFF['version']}"):
        assert part in sentence.replace("*", "")


def test_the_package_s_licence_and_words_are_the_citation_s():
    project = release.tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert CFF["license"] == project["license"]
    assert CFF["keywords"] == project["keywords"]
    assert project["description"].partition(":")[0] in CFF["title"]
    assert json.dumps(CFF["authors"]) == json.dumps(project["authors"])

"""A release of the package, up to what a person does: `python3 run.py release`.

Each line says what was looked at. Files are built into `dist`, and the wheel is installed into a
clean environment of each Python that GEMMLAB_PYTHONS names, or of this one. Nothing is tagged and
nothing is sent: the commands for that are the last lines, and stand only where all is well.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import yaml

import run

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
# Of PyPI, each in an environment of its own, which uv makes for the moment.
TWINE, CONTENTS, CFF = "twine==7.0.0", "check-wheel-contents==0.6.3", "cffconvert==2.0.0"

LEFT = """\
All is well. What a person does now:
  git tag --annotate v{version} --message "gemmlab {version}" && git push origin v{version}
  {python} -m uv tool run {twine} upload {files}
  python3 run.py book, and the folder book/_build/html to where the site is: book/share.md
  with a DOI, if Zenodo or another archive gives one: `doi: ...` in CITATION.cff
  a heading [Unreleased] in CHANGELOG.md, for what comes next
README.md's pictures and links are relative: PyPI's page shows them once they have an address.
"""


def version() -> str:
    """The version that pyproject.toml names."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]


def faults(texts: Mapping[str, str], status: str, tags: str) -> Iterator[str]:
    """Say what is not ready before anything is built.

    texts : of pyproject.toml, CHANGELOG.md and CITATION.cff; status, tags : what git says
    """
    own = tomllib.loads(texts["pyproject.toml"])["project"]["version"]
    heading = re.search(
        rf"^## \[{re.escape(own)}\] - (\d{{4}}-\d\d-\d\d)$", texts["CHANGELOG.md"], re.M
    )
    cited = yaml.safe_load(texts["CITATION.cff"])
    if status.strip():
        yield f"the tree has changes that are not committed:\n{status.rstrip()}"
    if not heading:
        yield f"CHANGELOG.md has no line '## [{own}] - YEAR-MONTH-DAY'"
    if cited["version"] != own:
        yield f"CITATION.cff is of version {cited['version']}, pyproject.toml of {own}"
    if heading and str(cited.get("date-released")) != heading[1]:
        yield f"CITATION.cff needs 'date-released: {heading[1]}', as CHANGELOG.md has it"
    if f"v{own}" in tags.split():
        yield f"there is a tag v{own}: raise the version in pyproject.toml and CITATION.cff"


def same_files(wheel: Path, other: Path) -> bool:
    """Whether two wheels have the same files with the same content, but for their own lists."""
    contents = []
    for path in (wheel, other):
        with zipfile.ZipFile(path) as files:
            names = [one for one in files.namelist() if not one.endswith("/RECORD")]
            contents.append({one: files.read(one) for one in names})
    return contents[0] == contents[1]


def asked(*command: str) -> str:
    """What a command writes."""
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def done(what: str, *command: str, **more: str) -> bool:
    """Run a command, and say whether it went well; all that it wrote, where it did not."""
    env = {**os.environ, **more}
    made = subprocess.run(
        command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    print(f"{'ok' if made.returncode == 0 else 'FAILED':8}{what}", flush=True)
    if made.returncode:
        print(made.stdout)
    return made.returncode == 0


def built() -> list[Path]:
    """The sdist and the wheel, built anew, or nothing where one is not as it should be."""
    for old in DIST.glob("gemmlab-*"):
        old.unlink()
    python = sys.executable
    if not done("sdist and wheel are built", python, "-m", "hatchling", "build"):
        return []
    [sdist], [wheel] = DIST.glob("gemmlab-*.tar.gz"), DIST.glob("gemmlab-*.whl")
    again = DIST / "from-sdist"
    pip = [python, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    if not done("a wheel is built from the sdist", *pip, "--wheel-dir", str(again), str(sdist)):
        return []
    same = same_files(wheel, again / wheel.name)
    (again / wheel.name).unlink()
    again.rmdir()
    print(f"{'ok' if same else 'FAILED':8}both wheels have the same files")
    return [sdist, wheel] if same else []


def main() -> int:
    """Look at everything; 0 where a person may go on."""
    names = ("pyproject.toml", "CHANGELOG.md", "CITATION.cff")
    texts = {name: (ROOT / name).read_text("utf-8") for name in names}
    found = list(faults(texts, asked("git", "status", "--porcelain"), asked("git", "tag")))
    for fault in found:
        print(f"{'FAILED':8}{fault}")
    made = built()
    if not made:
        return 1
    paths = list(map(str, made))
    index = run.uv_environment(run.pip_settings(sys.executable), {})
    tool = [sys.executable, "-m", "uv", "tool", "run", "--quiet"]
    tests = [sys.executable, "-m", "pytest", "-n0", "-q", "tests/project/test_wheel.py"]
    pythons = os.environ.get("GEMMLAB_PYTHONS") or sys.executable
    well = [
        done("twine finds them well", *tool, TWINE, "check", "--strict", *paths, **index),
        done("check-wheel-contents, too", *tool, CONTENTS, paths[1], **index),
        done("CITATION.cff is valid", *tool, CFF, "--validate", **index),
        done(
            f"the wheel runs in a clean environment of {pythons}",
            *tests, GEMMLAB_PYTHONS=pythons, GEMMLAB_WHEEL=paths[1],
        ),
    ]  # fmt: skip
    if found or not all(well):
        return 1
    print(LEFT.format(version=version(), python=sys.executable, twine=TWINE, files=" ".join(paths)))
    return 0


if __name__ == "__main__":
    sys.exit(main())

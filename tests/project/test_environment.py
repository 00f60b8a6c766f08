"""environment.yml, pyproject.toml and the lock files name the same packages; bytecode is kept."""

import itertools
import re
import sys
import tomllib

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

import run
from tests.support.paths import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
CONDA = yaml.safe_load((ROOT / "environment.yml").read_text("utf-8"))
LOCKS = {path.stem: path.read_text("utf-8") for path in (ROOT / "requirements").glob("*.txt")}

CONDA_NAMES = {"matplotlib-base": "matplotlib"}  # conda's matplotlib would bring a window system
CONDA_ONLY = {"pip", "python"}
SYSTEMS = {
    "linux": {"sys_platform": "linux", "os_name": "posix", "platform_machine": "x86_64"},
    "linux on Arm": {"sys_platform": "linux", "os_name": "posix", "platform_machine": "aarch64"},
    "windows": {"sys_platform": "win32", "os_name": "nt", "platform_machine": "AMD64"},
    "macos": {"sys_platform": "darwin", "os_name": "posix", "platform_machine": "arm64"},
}
PLACES = [
    {**system, "python_version": version, "python_full_version": f"{version}.6"}
    for system, version in itertools.product(SYSTEMS.values(), ["3.11", "3.12", "3.13", "3.14"])
]


def needs(extra: str) -> list[Requirement]:
    """What the project asks for with one extra, extras of its own resolved."""
    lines = PROJECT["dependencies"] + PROJECT["optional-dependencies"][extra]
    found = []
    for requirement in map(Requirement, lines):
        if requirement.name == PROJECT["name"]:
            found += [need for inner in requirement.extras for need in needs(inner)]
        else:
            found.append(requirement)
    return found


def merged(requirements: list[Requirement]) -> dict[str, SpecifierSet]:
    """Package -> everything that is asked of its version."""
    found: dict[str, SpecifierSet] = {}
    for requirement in requirements:
        name = canonicalize_name(requirement.name)
        found[name] = found.get(name, SpecifierSet()) & requirement.specifier
    return found


def applies(requirement: Requirement, place: dict[str, str]) -> bool:
    return requirement.marker is None or requirement.marker.evaluate({"extra": "", **place})


def pins(lock: str, place: dict[str, str]) -> dict[str, str]:
    """Package -> the one version that a lock file gives at a place."""
    found: dict[str, str] = {}
    for line in re.sub(
        r" \\\n(    --hash=sha256:[0-9a-f]{64}( \\\n)?)+", "", LOCKS[lock]
    ).splitlines():
        if line and not line.startswith("#"):
            requirement = Requirement(line)
            (pin,) = requirement.specifier
            assert pin.operator == "==", line
            if applies(requirement, place):
                assert requirement.name not in found, line
                found[requirement.name] = pin.version
    return found


# ------------------------------------------------------------------------------------------- conda


def test_conda_channels():
    assert CONDA["channels"] == ["conda-forge", "nodefaults"]


def test_conda_names_the_packages_of_the_lab():
    lines = [line for line in CONDA["dependencies"] if isinstance(line, str)]
    conda = {}
    for line in lines:
        name, specifier = re.fullmatch(r"([a-z0-9-]+)\s*(.*)", line).groups()
        conda[CONDA_NAMES.get(name, name)] = SpecifierSet(specifier)
    assert conda.pop("python") == SpecifierSet(PROJECT["requires-python"])
    pip = {name: SpecifierSet() for name in CONDA_ONLY - {"python"}}
    together = merged(needs("lab") + needs("forecast"))  # what pip installs beside it
    assert conda == {name: together[name] for name in merged(needs("lab"))} | pip


def test_conda_installs_the_project_itself():
    (pip,) = [line["pip"] for line in CONDA["dependencies"] if isinstance(line, dict)]
    assert pip == ["-e .[forecast]"]


def test_conda_names_extras_that_there_are():
    text = (ROOT / "environment.yml").read_text("utf-8")
    named = re.findall(r"\[([\w-]+)\]", text)
    assert named == ["gpu", "gpu-mlir", "forecast-mlir", "forecast"]
    assert set(named) < set(PROJECT["optional-dependencies"])


# ------------------------------------------------------------------------------------------- locks


def test_base_needs_numpy_alone():
    assert [Requirement(line).name for line in PROJECT["dependencies"]] == ["numpy"]


NVIDIA = re.compile("cuda|cupy|nvidia|nvjitlink|nvvm")


@pytest.mark.parametrize("lock", ["lab", "test", "browser"])
def test_a_set_without_a_compiler_has_no_cuda_package(lock):
    """So that either compiler may stand beside it, alone."""
    for place in PLACES:
        assert not [name for name in pins(lock, place) if NVIDIA.search(name)]


@pytest.mark.parametrize("compiler", run.COMPILERS)
def test_forecasts_need_a_compiler_and_nothing_that_runs_kernels(compiler):
    """Neither NVRTC nor a library of CUDA's, nor another compiler; on macOS nothing of NVIDIA's."""
    lock, _ = run.COMPILERS[compiler]
    tools = {"cuda-bindings", "cuda-core", "cuda-pathfinder", "cuda-toolkit", compiler}
    wheels = {f"nvidia-cuda-{name}" for name in ("crt", "nvcc", "nvdisasm", "runtime")}
    for place in PLACES:
        found = {name for name in pins(lock, place) if NVIDIA.search(name)}
        assert found == (
            set() if place["sys_platform"] == "darwin" else tools | wheels | {"nvidia-nvvm"}
        )
        assert "pyelftools" in pins(lock, place)


def test_numpy_is_held_back_for_numba_cuda_alone():
    capped = [name for name in LOCKS if not merged(needs(name))["numpy"].contains("2.5.5")]
    assert sorted(capped) == ["forecast", "gpu"]


def test_every_extra_has_a_lock_file():
    assert set(LOCKS) == set(PROJECT["optional-dependencies"])


@pytest.mark.parametrize("lock", sorted(LOCKS))
def test_lock_satisfies_the_project(lock):
    for place in PLACES:
        pinned = pins(lock, place)
        for need in needs(lock):
            own = lock in run.BEFORE and need.name == "numpy"  # which these are installed without
            if applies(need, place) and not own:
                assert need.specifier.contains(pinned[canonicalize_name(need.name)]), need


@pytest.mark.parametrize(
    "place",
    PLACES,
    ids=lambda p: f"{p['sys_platform']}-{p['platform_machine']}-{p['python_version']}",
)
def test_locks_agree_with_each_other(place):
    one: dict[str, str] = {}
    for lock in sorted(LOCKS):
        for name, version in pins(lock, place).items():
            assert one.setdefault(name, version) == version, f"{name} in {lock}.txt"


@pytest.mark.parametrize("lock", sorted(LOCKS))
def test_lock_has_no_address(lock):
    assert "://" not in LOCKS[lock]
    assert LOCKS[lock].count("--") == LOCKS[lock].count(" --hash=sha256:")
    assert " @ " not in LOCKS[lock]


@pytest.mark.parametrize("lock", sorted(LOCKS))
def test_each_pin_has_the_hashes_of_its_files(lock):
    blocks = re.split(r"\n(?=\S)", LOCKS[lock].partition("lock.py\n")[2].strip())
    assert [b for b in blocks if not re.search(r"^\S+==[^\n]* \\\n    --hash=sha256:", b)] == []


def test_what_a_verb_starts_keeps_its_bytecode(monkeypatch):
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setattr(run, "venv_python", lambda: sys.executable)
    assert run.call("-c", "import sys; sys.exit(sys.dont_write_bytecode)") == 0

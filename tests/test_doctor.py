"""The doctor: each ailment is named, and the command that mends it is given."""

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from gemmlab import doctor
from gemmlab.doctor import Environment, diagnose, environment, report
from gemmlab.here.driver import GpuStatus
from tests.support.paths import ROOT

PACKAGES = {
    "numpy": "2.4.6",
    "numba": "0.68.1",
    "jupyterlab": "4.6.6",
    "ipywidgets": "8.1.9",
    "matplotlib": "3.11.2",
    "numba-cuda": "0.30.4",
    "cupy": "13.6.0",
}
MLIR_ALONE = PACKAGES | {"numba-cuda": None, "numba-cuda-mlir": "0.6.0"}
GPU = GpuStatus(True, "", "runs", "NVIDIA H200", "580.65", (13, 0), (9, 0), {})
WELL = Environment((3, 12, 1), PACKAGES, GPU, {"h200": 120}, clone=False)
NO_GPU = replace(WELL, gpu=GpuStatus(False, "no-driver", "no NVIDIA driver is installed"))


def ill(problem, reason="it fails", **changes):
    return replace(WELL, gpu=replace(GPU, works=False, problem=problem, reason=reason, **changes))


def find(env, topic):
    return next(f for f in diagnose(env) if f.topic == topic)


def without(name, env=WELL):
    return replace(env, packages=PACKAGES | {name: None})


def test_all_well():
    assert all(f.status == "ok" and not f.fix for f in diagnose(WELL))
    text = report(WELL)
    assert text.endswith("Everything works.")
    assert "NVIDIA H200, compute capability 9.0, driver 580.65" in text
    assert "auto -> gpu" in text
    assert "h200 (120 measurements)" in text


def test_no_gpu_is_no_problem():
    assert [f.topic for f in diagnose(NO_GPU) if f.status != "ok"] == ["GPU", "backend"]
    assert not [f for f in diagnose(NO_GPU) if f.status == "problem"]
    assert "https://www.nvidia.com/drivers" in find(NO_GPU, "GPU").fix
    assert "auto -> simulator" in find(NO_GPU, "backend").text
    assert not find(replace(NO_GPU, platform="darwin"), "GPU").fix
    bare = replace(NO_GPU, packages=PACKAGES | {"numba-cuda": None, "cupy": None})
    assert find(bare, "numba-cuda").status == find(bare, "cupy").status == "ok"


def test_predictions_need_compilers_and_no_gpu():
    assert find(NO_GPU, "predictions").status == "ok"
    lacks = replace(NO_GPU, missing=("pyelftools", "nvdisasm"))
    found = find(lacks, "predictions")
    assert (found.status, found.fix) == ("note", 'python -m pip install "gemmlab[forecast]"')
    assert find(replace(lacks, clone=True), "predictions").fix == "python run.py lab"
    assert found.text.endswith("there is no pyelftools and no nvdisasm")
    assert not find(replace(lacks, platform="darwin"), "predictions").fix
    bare = replace(NO_GPU, packages=PACKAGES | {"numba-cuda": None})
    assert "of use with a GPU, and for predictions" in find(bare, "numba-cuda").text
    assert "of use with a GPU only" in find(NO_GPU, "cupy").text


def test_driver_too_old():
    old = ill("driver-too-old", "driver 550.1 runs CUDA up to 12.4", cuda=(12, 4))
    gpu = find(old, "GPU")
    assert gpu.status == "problem"
    assert "550.1" in gpu.text
    assert 'python -m pip install "numba-cuda[cu12]==0.30.*"' in gpu.fix
    assert "cu12" not in find(ill("driver-too-old", cuda=(11, 8)), "GPU").fix
    by_mlir = find(replace(old, packages=MLIR_ALONE), "GPU")
    assert 'python -m pip install "numba-cuda-mlir[cu12]==0.6.*"' in by_mlir.fix


def test_broken_cuda_installation():
    gpu = find(ill("broken", "numba-cuda 0.30.4 fails: ImportError: boom"), "GPU")
    assert "ImportError: boom" in gpu.text
    assert gpu.fix.startswith("python -m pip install --force-reinstall")
    in_clone = replace(ill("broken"), clone=True)
    assert find(in_clone, "GPU").fix == "delete the folder .venv, then: python run.py lab"
    by_mlir = find(replace(in_clone, packages=MLIR_ALONE), "GPU")
    assert by_mlir.fix.endswith(".venv, then: python run.py lab --compiler numba-cuda-mlir")
    fix = find(replace(ill("broken"), packages=MLIR_ALONE), "GPU").fix
    assert fix.endswith(' "numba-cuda-mlir[cu13]==0.6.*" "cuda-toolkit==13.0.*"')
    without_cupy = replace(WELL, packages=MLIR_ALONE | {"cupy": None})
    assert find(without_cupy, "cupy").fix == 'python -m pip install "gemmlab[gpu-mlir]"'


def test_gpu_without_numba_cuda():
    env = replace(ill("no-numba-cuda"), packages=PACKAGES | {"numba-cuda": None})
    assert find(env, "GPU").fix == 'python -m pip install "gemmlab[gpu]"'
    assert find(env, "numba-cuda").status == "problem"
    assert find(replace(env, clone=True), "GPU").fix == "python run.py lab"


def test_numpy_too_old():
    numpy = find(replace(WELL, packages=PACKAGES | {"numpy": "1.26.4"}), "numpy")
    assert (numpy.status, numpy.text) == ("problem", "1.26.4, needs >=2.0 for arrays")
    assert numpy.fix == 'python -m pip install "numpy>=2.0"'


@pytest.mark.parametrize("version", ["2.5.0", "2.10.1", "3.0.0rc1"])
def test_numpy_too_new_for_numba_cuda_alone(version):
    numpy = find(replace(WELL, packages=PACKAGES | {"numpy": version}), "numpy")
    assert (numpy.status, numpy.text) == ("problem", f"{version}, and numba-cuda 0.30 needs <2.5")
    assert numpy.fix == 'python -m pip install "numpy<2.5"'
    alone = PACKAGES | {"numpy": version, "numba-cuda": None, "numba-cuda-mlir": "0.6.0"}
    assert find(replace(NO_GPU, packages=alone), "numpy").status == "ok"


def test_which_compiler_is_used_and_why():
    first = find(WELL, "compiler")
    assert first.text.startswith("numba-cuda 0.30.4; auto -> numba-cuda: it made the code")
    both = replace(WELL, packages=PACKAGES | {"numba-cuda-mlir": "0.6.0"})
    assert find(both, "compiler").text.startswith(
        "numba-cuda 0.30.4 and numba-cuda-mlir 0.6.0; auto -> numba-cuda: "
    )
    alone = replace(NO_GPU, packages=MLIR_ALONE)
    found = find(alone, "compiler")
    assert found.status == "ok"
    assert found.text.startswith("numba-cuda-mlir 0.6.0; auto -> numba-cuda-mlir: it is the only")
    assert find(alone, "numba-cuda").text == "not installed; numba-cuda-mlir is in its place"
    on_gpu = replace(alone, gpu=WELL.gpu)
    assert find(on_gpu, "numba-cuda").status == find(on_gpu, "compiler").status == "ok"
    newer = replace(alone, packages=alone.packages | {"numba-cuda-mlir": "0.7.1"})
    assert find(newer, "compiler").status == "note"
    assert "0.7.1, tested with numba-cuda-mlir >=0.6,<0.7" in find(newer, "compiler").text
    broken = find(replace(alone, missing=("ptxas",)), "predictions")
    assert broken.fix == 'python -m pip install "gemmlab[forecast-mlir]"'


def test_without_a_compiler_both_are_named():
    none = find(replace(NO_GPU, packages=PACKAGES | {"numba-cuda": None}), "compiler")
    assert none.status == "note"
    assert none.text.startswith("neither numba-cuda nor numba-cuda-mlir is installed")
    assert none.fix == 'python -m pip install "gemmlab[forecast]"; or "gemmlab[forecast-mlir]"'
    assert not find(replace(without("numba-cuda", NO_GPU), platform="darwin"), "compiler").fix
    in_clone = replace(without("numba-cuda", NO_GPU), clone=True)
    assert find(in_clone, "compiler").fix == "python run.py lab"


def test_no_jupyterlab():
    lab = find(without("jupyterlab"), "jupyterlab")
    assert (lab.status, lab.fix) == ("problem", 'python -m pip install "gemmlab[lab]"')
    assert find(replace(without("jupyterlab"), clone=True), "jupyterlab").fix == "python run.py lab"
    assert report(without("jupyterlab")).endswith("1 problem")
    assert report(replace(without("cupy"), python=(3, 10, 0))).endswith("2 problems")


@pytest.mark.parametrize(
    ("version", "status"), [((3, 10, 9), "problem"), ((3, 14, 0), "ok"), ((3, 15, 0), "note")]
)
def test_python_versions(version, status):
    assert find(replace(WELL, python=version), "Python").status == status


def test_the_package_names_the_pythons_that_it_was_tried_in():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    named = [one for one in project["classifiers"] if "Language" in one]
    minors = range(doctor.PYTHON.least[1], doctor.PYTHON.below[1])
    assert named == [f"Programming Language :: Python :: 3.{minor}" for minor in minors]


@pytest.mark.parametrize(
    "env",
    [
        WELL,
        NO_GPU,
        without("numba"),
        ill(
            "broken",
            "numba-cuda fails: OSError: Zugriff verweigert für C:\\Programme\\Übung — " + "x " * 90,
        ),
    ],
)
def test_report_is_one_plain_screen(env):
    text = report(env)
    assert text.isascii()
    lines = text.splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 100


def test_commands_are_not_broken_over_words():
    """A command that wraps must still be there in full once the lines are joined."""
    env = ill("broken")
    joined = " ".join(line.strip() for line in report(env).splitlines())
    assert find(env, "GPU").fix in joined


def test_the_real_environment():
    env = environment()
    assert set(env.packages) == set(doctor.NEEDS)
    assert env.packages["numpy"]
    assert env.python >= (3, 11)
    assert report(env).startswith("  ok  Python ")
    for problem in ("no-driver", "no-gpu", "no-numba-cuda", "driver-too-old", "broken"):
        assert find(ill(problem), "GPU").text


def test_needs_are_those_of_the_project():
    file = Path(doctor.__file__).parents[1] / "pyproject.toml"
    if not file.is_file():
        pytest.skip("not in a clone")
    project = tomllib.loads(file.read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    stated = " ".join(
        project["dependencies"] + extras["lab"] + extras["gpu"] + extras["forecast-mlir"]
    )
    for name, need in doctor.NEEDS.items():
        least = ".".join(map(str, need.least))
        spelled = {"cupy": "cupy-cuda13x", "numba-cuda": "numba-cuda[cu13]"}.get(name, name)
        assert f"{spelled}>={least}" in stated or f"{spelled}=={least}.*" in stated, name
        if need.below and f"{name}==" not in stated.replace("[cu13]", ""):
            assert f"<{'.'.join(map(str, need.below))}" in stated, name

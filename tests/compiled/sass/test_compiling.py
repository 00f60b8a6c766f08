"""What compiling needs: found where it is, named where it is not, with the way to have it."""

import builtins
import re

import numpy as np
import pytest

from gemmlab import Gemm, Tiling, cuda, kernels
from gemmlab.compiled.forecast import rung_listings
from gemmlab.compiled.forecast.kernel import predict_time
from gemmlab.compiled.forecast.rungs import predict_rung
from gemmlab.compiled.sass import compiling
from gemmlab.here import compilers, numbas


@pytest.fixture(autouse=True)
def asked_anew():
    compilers.missing.cache_clear()
    yield
    compilers.missing.cache_clear()


@pytest.mark.ptxas
def test_nothing_is_missing_where_all_is_there():
    assert compilers.missing() == ()
    assert compilers.lacking() == ""


def test_what_is_missing_is_named_in_one_line(monkeypatch):
    def no_tool(name):
        if name == "nvdisasm":
            raise RuntimeError("none")

    monkeypatch.setattr(compilers, "find_spec", lambda name: None if name == "elftools" else name)
    monkeypatch.setattr(compilers, "tool", no_tool)
    monkeypatch.setattr(numbas, "find_spec", lambda name: name if name in here else None)
    here = {"numba_cuda_mlir"}
    for compiler, extra in (("auto", "forecast-mlir"), (compilers.MLIR, "forecast-mlir")):
        assert compilers.missing(compiler) == ("pyelftools", "nvdisasm")
        assert compilers.lacking(compiler) == (
            f'there is no pyelftools and no nvdisasm; python -m pip install "gemmlab[{extra}]" '
            "(Linux, Windows; no GPU is needed)"
        )
    assert compilers.lacking(compilers.NUMBA).startswith("there is no numba-cuda and no pyelftools")
    compilers.missing.cache_clear()
    here = {"numba", "numba_cuda", "numba_cuda_mlir"}
    assert '"gemmlab[forecast]"' in compilers.lacking()
    assert '"gemmlab[forecast-mlir]"' in compilers.lacking(compilers.MLIR)


def doubled(x):
    x[cuda.grid(1)] *= 2


@pytest.mark.numba_cuda
@pytest.mark.ptxas
def test_nvrtc_is_not_needed(monkeypatch):
    """The library that Numba asks for capabilities: it is not among the extra's packages."""
    from cuda import pathfinder
    from numba.cuda import cuda_paths
    from numba.cuda.cudadrv import nvrtc, nvvm

    load = pathfinder.load_nvidia_dynamic_lib
    absent = {"nvrtc": lambda name: pytest.fail("NVRTC is loaded")}
    monkeypatch.setattr(
        pathfinder, "load_nvidia_dynamic_lib", lambda name: absent.get(name, load)(name)
    )
    monkeypatch.setattr(nvrtc, "get_supported_ccs", lambda: pytest.fail("NVRTC is asked"))
    monkeypatch.setattr(nvvm.LibDevice, "_cache_", None)  # as in a process that begins
    monkeypatch.delattr(cuda_paths.get_cuda_paths, "_cached_result", raising=False)
    for target in ("sm_80", "sm_90"):
        code = compiling.listing(doubled, (np.ones(2),), target)
        assert code.architecture == target


@pytest.fixture
def bare(monkeypatch):
    """A machine with NumPy alone, as `pip install gemmlab` makes it."""
    absent, load = (
        {"numba", "numba_cuda", "numba_cuda_mlir", "elftools", "cuda"},
        builtins.__import__,
    )

    def no_such(name, *rest, **more):
        if name.partition(".")[0] in absent:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return load(name, *rest, **more)

    def no_tool(name):
        raise RuntimeError("none")

    monkeypatch.setattr(builtins, "__import__", no_such)
    for module in (compilers, numbas):
        monkeypatch.setattr(module, "find_spec", lambda name: None)
    monkeypatch.setattr(compilers, "tool", no_tool)
    monkeypatch.setattr(rung_listings, "_COMPILED", {})  # what other tests have had compiled


ALL = "there is no numba-cuda or numba-cuda-mlir and no pyelftools and no ptxas and no nvdisasm"
INSTALL = compilers.INSTALL[compilers.NUMBA]


@pytest.mark.parametrize(
    ("kernel", "problem", "tiling"),
    [
        (kernels.vectorised, Gemm(101, 101, 101), None),  # another build for rows that end anywhere
        (kernels.tiled, Gemm(64, 64, 64), Tiling.square(4)),  # a tiling without measurements
    ],
)
def test_a_rung_that_is_not_recorded_says_what_compiling_it_needs(bare, kernel, problem, tiling):
    with pytest.raises(RuntimeError, match=re.escape(f"{ALL}; {INSTALL}")):
        predict_rung(problem, "h200", kernel, tiling)


def test_a_kernel_of_ones_own_says_what_compiling_it_needs(bare):
    with pytest.raises(RuntimeError, match=re.escape(f"{ALL}; {INSTALL}")):
        predict_time(lambda: None, 1, 32)
    with pytest.raises(RuntimeError, match=ALL):
        compiling.with_lines(lambda: None, ())


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("desc[UR16][R8.64],!P2[R7+0x20]", ("[R7+0x20]", "desc[UR16][R8.64]", "!P2")),
        ("desc[UR16][R8.64+0x20],[R7]", ("[R7]", "desc[UR16][R8.64+0x20]")),
        ("[R7],desc[UR16][R8.64],P2", ("[R7]", "desc[UR16][R8.64]", "P2")),
        ("[R7+0x20][R8.64],P2", ("[R7+0x20]", "[R8.64]", "P2")),  # before sm_90
    ],
)
def test_nvdisasm_13_0_names_the_source_of_a_copy_first(written, meant):
    item = {"opcode": "LDGSTS.E", "operands": written}
    assert compiling.read_instruction(0, item, bytes(16), "kernel").operands == meant

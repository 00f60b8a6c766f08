"""Listings that come with gemmlab: of the source that is here, and what compilers make of it."""

import gzip
import inspect
import json
import platform
from dataclasses import replace

import numpy as np
import pytest

from gemmlab import Gemm, Tiling, cuda, kernels, records
from gemmlab.compiled.forecast import recorded
from gemmlab.compiled.forecast.rung_listings import ANY, listings, rung_listing, usual
from gemmlab.compiled.forecast.rungs import predict_rung
from gemmlab.compiled.sass import compiling
from gemmlab.compiled.sass.listing import Line
from tests.support.listings import listing

HOPPER = (9, 0)
rungs = pytest.mark.parametrize("kernel", recorded.RUNGS, ids=lambda k: k.name)
launches = pytest.mark.parametrize(
    ("one", "kernel"),
    [(one, kernel) for kernel in recorded.RUNGS for one in kernel.launches],
    ids=lambda given: getattr(given, "name", given.build.__name__),
)


def found(kernel, tiling=None, problem=None, one=None):
    problem, tiling = problem or usual(kernel), kernel.choose(tiling)
    return recorded.find(one or kernel, kernel, problem, tiling, HOPPER)


def keys(kernel, problem, tiling):
    """Of all launches."""
    return [recorded.key_of(one, kernel, problem, tiling, HOPPER) for one in kernel.launches]


def measured(kernel):
    """All measurements of a kernel; of some there are none yet."""
    try:
        return records.load("h200", kernel)
    except LookupError:
        return []


@rungs
def test_every_tiling_with_measurements_has_a_listing_of_the_source_that_is_here(kernel):
    """And it takes the registers that the measured kernel took: else it is other code, of which
    other numbers of blocks may share an SM.
    """
    for tiling in kernel.tilings or (kernel.default,):
        code = found(kernel, tiling)
        assert code is not None, "gemmlab record --listings"
        asked = keys(kernel, usual(kernel), tiling)
        registers = {
            m.resources["registers"]
            for m in measured(kernel)
            if m.resources and keys(kernel, m.problem, m.tiling) == asked
        }
        assert registers <= {code.registers}
        if kernel in (*kernels.LADDER[3:], *kernels.TENSOR_CORE):  # others' tell of none, or of
            assert registers  # other tilings


def made_here(kernel):
    """Whether a kernel's listings were made with this version of Python.

    Of another one's bytecode Numba makes other code; not so of the kernels whose file names none.
    The listings themselves are not read: that would take seconds of everybody who collects tests.
    """
    text = gzip.decompress(recorded.path_of(kernel, "sm_90").read_bytes())
    known = json.loads(text)["provenance"].get("python")
    return known is None or known.split(".")[:2] == platform.python_version().split(".")[:2]


MADE_HERE = [kernel for kernel in recorded.RUNGS if made_here(kernel)]


@pytest.mark.numba_cuda
@pytest.mark.ptxas
@pytest.mark.slow
@pytest.mark.parametrize(
    ("kernel", "tilings"),
    [
        *((kernel, (kernel.default,)) for kernel in MADE_HERE),
        *(
            pytest.param(kernel, kernel.tilings[1::3], marks=pytest.mark.measuring)
            for kernel in MADE_HERE
            if kernel.tilings
        ),
    ],
    ids=lambda x: getattr(x, "name", len(x) if isinstance(x, tuple) else None),
)
def test_the_compiler_makes_what_is_recorded(kernel, tilings):
    made = listings(replace(kernel, tilings=tilings), HOPPER)
    assert len(made) == len(tilings) * len(kernel.launches)
    for tiling in tilings:
        for one, key in zip(kernel.launches, keys(kernel, usual(kernel), tiling), strict=True):
            same = vars(made[key]) == vars(found(kernel, tiling, one=one))
            assert same, f"{kernel.name} {key}: gemmlab record --listings"


@cuda.jit
def doubled(x):
    i = cuda.grid(1)
    x[i] *= 2


@cuda.jit
def squared_and_doubled(x):
    i = cuda.grid(1)
    x[i] *= 2 * x[i]


@pytest.mark.ptxas
def test_where_naming_lines_makes_other_code_there_are_none(monkeypatch):
    """The code is that of a compilation without them, as a GPU executes it."""
    arguments = (np.zeros(8, np.float32),)
    plain, named = (f(doubled, arguments) for f in (compiling.listing, compiling.with_lines))
    assert plain.instructions == named.instructions
    assert plain.lines == ()
    assert Line(4, "x[i] *= 2") in named.lines
    cubin = compiling._cubin

    def other(function, *asked, lineinfo=False):
        return cubin(squared_and_doubled.py_func if lineinfo else function, *asked)

    monkeypatch.setattr(compiling, "_cubin", other)
    assert compiling.with_lines(doubled, arguments) is plain


@cuda.jit
def divided(x, y):
    x[cuda.grid(1)] //= y


@pytest.mark.ptxas
def test_two_compilations_make_the_same_code():
    """Also of what calls functions, which name the kernel: its name has a number of Numba's."""
    arguments = np.zeros(8, np.int64), np.int64(3)
    first = compiling.listing(divided, arguments)
    compiling._listing.cache_clear()
    second = compiling.listing(divided, arguments)
    assert first is not second
    assert vars(first) == vars(second)
    assert any("RET" in i.name and "kernel" in i.operands for i in first.instructions)
    assert first.functions
    assert 0 not in first.functions.values()


@launches
def test_lines_are_those_of_the_source(one, kernel):
    function = one.function(usual(kernel), kernel.default, HOPPER)
    source = inspect.getsource(getattr(function, "py_func", function)).splitlines()
    for line in set(found(kernel, one=one).lines):
        assert line.text == source[line.number - 1].strip()


def test_the_products_come_from_the_line_that_multiplies():
    code = found(kernels.tiled)
    texts = {
        line.text for i, line in zip(code.instructions, code.lines, strict=True) if i.name == "FFMA"
    }
    assert "acc += As[y, p] * Bs[p, x]" in texts


def test_a_source_that_has_changed_has_no_recorded_listing(monkeypatch):
    assert found(kernels.tiled) is not None
    monkeypatch.setattr(recorded, "source_hash", lambda kernel: "another")
    assert found(kernels.tiled) is None


def test_other_builds_are_not_recorded():
    assert found(kernels.vectorised, problem=Gemm(101, 101, 101)) is None  # rows are not aligned
    assert found(kernels.tiled, Tiling.square(4)) is None
    tiled = kernels.tiled
    assert recorded.find(tiled, tiled, ANY, tiled.default, (8, 0)) is None


def test_a_kernel_is_predicted_without_a_compiler(monkeypatch):
    """Also one of several launches."""

    def missing(*arguments, **options):
        raise RuntimeError("ptxas is needed")

    monkeypatch.setattr("gemmlab.compiled.forecast.rung_listings.compiled_launch", missing)
    problem = Gemm(64, 64, 64)
    code = rung_listing(kernels.tiled, problem)
    assert predict_rung(problem, "h200", kernels.tiled).listing is code
    assert len(predict_rung(problem, "h200", kernels.split_k).others) == 1
    with pytest.raises(RuntimeError, match="ptxas is needed"):
        rung_listing(kernels.tiled, problem, Tiling.square(4))


def test_a_file_says_what_it_was_made_of(tmp_path):
    code = replace(
        listing("-1---- W0 R- Y S04  @!P0 LDS.128 R4, [R8+UR4+0x10]\n------ W- R2 - S01  EXIT"),
        functions={"called": 16},
        constants={4: b"\x00\x01"},
        data=bytes(3),
        pointers=((0, 1),),
        lines=(Line(7, "x = y[i]  # µ"), None),
    )
    tiled = kernels.tiled
    (key,) = keys(tiled, ANY, tiled.default)
    path = recorded.path_of(tiled, "sm_90", tmp_path)
    recorded.write(path, tiled, {key: code}, {"ptxas": "1.2"})
    back = recorded.find(tiled, tiled, ANY, tiled.default, HOPPER, tmp_path)
    assert vars(back) == vars(code)
    assert recorded.provenance(path)["ptxas"] == "1.2"


def test_an_edited_file_is_refused(tmp_path):
    path = recorded.path_of(kernels.tiled, "sm_90", tmp_path)
    recorded.write(path, kernels.tiled, {}, {"ptxas": "1.2"})
    text = gzip.decompress(path.read_bytes()).replace(b"1.2", b"1.3")
    path.write_bytes(gzip.compress(text))
    with pytest.raises(records.RecordError, match=r"edited.*gemmlab record --listings"):
        recorded.provenance(path)


def test_all_that_is_recorded_is_small():
    files = list(records.ROOT.glob("sm_*/*.json.gz"))
    assert {f.name.partition(".")[0] for f in files} == {k.name for k in recorded.RUNGS}
    # More than a third of it are kernels that divide k.
    assert sum(f.stat().st_size for f in files) < 1_200_000

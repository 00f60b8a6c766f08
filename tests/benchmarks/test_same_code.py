"""Rungs that read otherwise than when they were measured: the same code, or they are not carried.

Where a rung's listing is of the tools that are here, `tests/compiled/forecast/test_recorded.py`
compiles it again for everybody; here it is the code that was written. One more is compiled here.
"""

import gzip
import json
from dataclasses import replace

import numpy as np
import pytest

from benchmarks import same_code
from gemmlab import Tiling, cuda, kernels
from gemmlab.compiled.forecast import recorded
from gemmlab.compiled.sass.compiling import listing
from gemmlab.kernels import hashing
from gemmlab.kernels.hashing import functions_sha256, source_hash
from gemmlab.measure import store

CARRIED = [one for one in recorded.RUNGS if functions_sha256(one) in hashing.CARRIED]
carried = pytest.mark.parametrize("kernel", CARRIED, ids=lambda kernel: kernel.name)


def misled():
    """Who is carried wrongly: a source that no rung has, or to a hash that was not its rung's."""
    now = {functions_sha256(one): one for one in recorded.RUNGS}
    return [
        then
        for source, then in hashing.CARRIED.items()
        if source not in now or same_code.recorded_source(now[source]) != then
    ]


def test_a_source_is_carried_to_what_was_written_of_its_rung(monkeypatch):
    assert misled() == []
    first, *_ = CARRIED
    monkeypatch.setitem(hashing.CARRIED, functions_sha256(first), source_hash(kernels.naive))
    assert misled() == [source_hash(kernels.naive)]
    monkeypatch.undo()
    monkeypatch.setitem(hashing.CARRIED, "of no rung", source_hash(first))
    assert misled() == [source_hash(first)]


@carried
def test_a_carried_rung_is_launched_as_it_was(kernel):
    assert len(same_code.cases_of(kernel)) > 10
    assert same_code.launched_otherwise(kernel) == []


def test_another_launch_is_found_in_each_case():
    kernel, *_ = CARRIED
    cases = same_code.cases_of(kernel)
    for other in (
        {"configure": lambda problem, tiling: ((1, 1), (128, 1))},
        {"shared_bytes": lambda problem, tiling: 1024},
        {"compile": lambda tiling: {"launch_bounds": (512, 1)}},
        {"workspace": lambda problem, tiling: (kernels.kernel.Workspace((1,), "float32"),)},
        {"persistent": not kernel.persistent},
        {"cluster": 2},
    ):
        assert len(same_code.launched_otherwise(replace(kernel, **other))) == len(cases), other


def test_a_source_that_is_not_carried_has_its_own_hash():
    kernel, *_ = CARRIED
    other = replace(kernel, compile=lambda tiling: {"launch_bounds": (512, 1)})
    assert source_hash(kernel) != functions_sha256(kernel)
    assert source_hash(other) == functions_sha256(other) != source_hash(kernel)


def listed(kernel):
    """Whether the tools that are here made a rung's listing: it is compiled again elsewhere."""
    text = gzip.decompress(recorded.path_of(kernel, "sm_90").read_bytes())
    known = json.loads(text)["provenance"]
    known["python"] = ".".join(known.get("python", "").split(".")[:2])
    return same_code.tools().items() <= known.items()


LISTED = [kernel for kernel in CARRIED if listed(kernel)]


@pytest.mark.parametrize("kernel", LISTED, ids=lambda kernel: kernel.name)
def test_the_listing_is_the_code_that_was_written(kernel):
    known = same_code.code_of(kernel)
    found = recorded.read(recorded.path_of(kernel, "sm_90"))
    written = {key: known[key] for key in found}
    assert {key: same_code.code_sha256(code) for key, code in found.items()} == written


@cuda.jit
def moved(x, y):
    i = cuda.grid(1)
    x[i] = x[i] * np.float32(3) + y[i]
    y[i] = np.float32(0)


@cuda.jit
def moved_by_another_name(values, added):
    place = cuda.grid(1)
    values[place] = values[place] * np.float32(3) + added[place]
    added[place] = np.float32(0)


@cuda.jit
def with_another_constant(x, y):
    i = cuda.grid(1)
    x[i] = x[i] * np.float32(5) + y[i]
    y[i] = np.float32(0)


@cuda.jit
def in_another_order(x, y):
    i = cuda.grid(1)
    z = x[i] * np.float32(3) + y[i]
    y[i] = np.float32(0)
    x[i] = z


@pytest.mark.numba_cuda
@pytest.mark.ptxas
@pytest.mark.measuring
def test_names_change_no_code_but_a_constant_and_an_order_do():
    x = np.zeros(8, np.float32)
    one, same, *others = (
        same_code.code_sha256(listing(function, (x, x)))
        for function in (moved, moved_by_another_name, with_another_constant, in_another_order)
    )
    assert one == same
    assert len({one, *others}) == 3


@pytest.mark.numba_cuda
@pytest.mark.ptxas
@pytest.mark.measuring
def test_a_carried_rung_is_the_code_that_was_written():
    """One whose listing other tools made; `python -m benchmarks.same_code` compares all of all."""
    kernel = next(one for one in CARRIED if one not in LISTED)
    known = same_code.code_of(kernel)
    if not known:
        pytest.skip(f"nothing was written of {kernel.name} by {same_code.tools()}")
    own = same_code.compilations(kernel, [*same_code.cases_of(kernel)][:1])
    assert len(own) == len(kernel.launches)
    assert same_code.other_code(kernel, own) == []


def test_tilings_are_read_as_they_are_printed():
    for tiling in (
        Tiling(block=(64, 32, 16)),
        Tiling(block=(64, 32, 16), warp=(32, 16), thread=(4, 4), stages=3, split=13),
    ):
        assert same_code._tiling(str(tiling)) == tiling
    with pytest.raises(ValueError, match="1 stages"):
        same_code._tiling("64×32×16, 1 stages")


def test_an_edited_file_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "same_code.json"
    path.write_text(same_code.FILE.read_text("utf-8").replace("stages", "stage", 1), "utf-8")
    monkeypatch.setattr(same_code, "FILE", path)
    with pytest.raises(store.RecordError, match="edited"):
        same_code.written()

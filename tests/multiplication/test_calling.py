"""The call of `matmul` for arrays of a GPU, on a stand-in for Numba's host functions."""

import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import gemmlab
from gemmlab import kernels
from gemmlab.instructions import host as host_side
from gemmlab.multiplication import calling, machines, plans
from gemmlab.multiplication.plans import Block
from tests.support.fake_cupy import Array, on_gpu
from tests.support.fake_driver import Driver
from tests.support.noting import Noting
from tests.support.ptx import ptx

TERMS = calling.checked(None, 3)


def integers(*shape, seed=1):
    return np.random.default_rng(seed).integers(-2, 3, shape).astype(np.float32)


def launches(host):
    return [entry for entry in host.log if entry[0] == "launch"]


def test_arrays_of_a_gpu_stay_there(gpu):
    a, b = integers(2, 40, 70), integers(2, 36, 70)
    c = gemmlab.matmul(on_gpu(a), on_gpu(b).swapaxes(1, 2))
    assert type(c) is Array
    assert np.array_equal(c, a @ b.swapaxes(1, 2))
    assert gemmlab.matmul_choice(on_gpu(a), on_gpu(b).swapaxes(1, 2)).layout == "nt"
    assert len(launches(gpu)) == 7  # scale A and B twice, tensor maps, multiply, lone lines
    queued = [entry for entry in gpu.log if entry[0] in ("launch", "memset")]
    assert {entry[-2 if entry[0] == "launch" else -1] for entry in queued} == {77}
    zeros = [entry[1] for entry in gpu.log if entry[0] == "memset"]
    assert sorted(zeros) == [2 * 36 * 4, 2 * 40 * 4]  # exponents of columns of B and of rows of A
    assert [entry[0] for entry in gpu.log].count("push") == 1
    assert gpu.log[-1] == ("pop",)


def test_a_plan_is_made_once_for_a_kind_of_operands(gpu):
    """Other values, addresses and streams use it as it is; other strides or starts do not."""
    a, b = integers(20, 36), integers(36, 20)
    gemmlab.matmul(on_gpu(a), on_gpu(b))
    gpu.log.clear()
    gpu.cupy.stream = SimpleNamespace(ptr=5)
    a, b = integers(20, 36, seed=2), integers(36, 20, seed=2)
    assert np.array_equal(gemmlab.matmul(on_gpu(a), on_gpu(b)), a @ b)
    assert calling.planned.cache_info().misses == 1
    assert {entry[2] for entry in launches(gpu)} == {5}
    assert "compile" not in {entry[0] for entry in gpu.log}
    room = np.zeros(20 * 40 + 8, np.float32)
    start = -room.__array_interface__["data"][0] % 16 // 4
    for begin, pitch, plans_made in ((0, 36, 1), (1, 36, 2), (0, 40, 3)):
        moved = room[start + begin :][: 20 * pitch].reshape(20, pitch)[:, :36]
        moved[:] = a
        assert np.array_equal(gemmlab.matmul(on_gpu(moved), on_gpu(b)), a @ b)
        assert calling.planned.cache_info().misses == plans_made


def test_threads_may_share_a_plan(gpu, monkeypatch):
    """A call that begins while another one queues its launches does not change them."""
    a, b, other = integers(20, 8), integers(8, 20), integers(20, 8, seed=9)
    go, between = plans.go, []

    def interrupted(calls):
        for call in calls:
            if call.what.startswith("launch") and not between:
                between.append(None)
                between[0] = gemmlab.matmul(on_gpu(other), on_gpu(b))
            go([call])

    monkeypatch.setattr(plans, "go", interrupted)
    assert np.array_equal(gemmlab.matmul(on_gpu(a), on_gpu(b)), a @ b)
    assert np.array_equal(between[0], other @ b)
    assert calling.planned.cache_info().misses == 1


def test_each_gpu_has_a_plan_and_a_context(gpu):
    a = on_gpu(integers(8, 8))
    gemmlab.matmul(a, a)
    there = a.copy().view(Elsewhere)
    c = gemmlab.matmul(there, there)
    assert np.array_equal(c, np.asarray(a) @ np.asarray(a))
    assert [entry for entry in gpu.log if entry[0] == "push"] == [
        ("push", "context 0"), ("push", "context 1")
    ]  # fmt: skip
    assert calling.planned.cache_info().misses == 2


class Elsewhere(Array):
    """An array on the other GPU."""

    device = SimpleNamespace(id=1)


Elsewhere.__module__ = "cupy"


def test_a_launch_that_fails_is_told_and_the_context_comes_back(gpu, monkeypatch):
    failing = Driver(gpu.log)
    failing.cuLaunchKernel = lambda *told: (SimpleNamespace(name="CUDA_ERROR_LAUNCH_FAILED"),)
    monkeypatch.setattr(plans, "_driver", lambda: failing)
    a = on_gpu(integers(8, 8))
    with pytest.raises(RuntimeError, match="launch scale_first: CUDA_ERROR_LAUNCH_FAILED"):
        gemmlab.matmul(a, a)
    assert gpu.log[-1] == ("pop",)


def test_fp32_units_take_no_workspace(gpu, monkeypatch):
    tiling = kernels.pipelined.tilings[-1]
    monkeypatch.setattr(calling, "fastest", lambda *_: ("pipelined", tiling, "asked for"))
    a, b = integers(2, 20, 33), integers(2, 33, 30)
    assert np.array_equal(gemmlab.matmul(on_gpu(a), on_gpu(b)), a @ b)
    assert {entry[0] for entry in gpu.log} == {"compile", "attribute", "push", "launch", "pop"}


def test_what_is_allowed_is_what_is_launched_with(gpu):
    a = on_gpu(integers(8, 8))
    gemmlab.matmul(a, a)
    shared = [entry[3] for entry in launches(gpu) if entry[3]]
    allowed = [entry[2] for entry in gpu.log if entry[0] == "attribute"]
    assert shared == allowed
    assert shared[0] > 48 << 10


@pytest.mark.usefixtures("gpu")
def test_host_arrays_go_to_the_gpu_and_come_back(monkeypatch):
    went = []
    monkeypatch.setattr(calling, "multiply", lambda a, b, *_: went.append((a, b)) or Back())
    monkeypatch.setattr(calling, "FEW_ON_HOST", 2 * 8**3)
    a = integers(8, 8)
    assert gemmlab.matmul_choice(a, a).kernel == "tcec_batched"
    assert gemmlab.matmul_choice(a[:7], a).kernel == "numpy"
    assert calling._from_host(*calling.arrays.check(a, a), TERMS, a, a) == "came back"
    assert len(went) == 1


class Back:
    """A result on the GPU."""

    def copy_to_host(self):
        return "came back"


def test_memory_that_comes_back_is_used_anew(gpu):
    """Other operands at the same addresses, and the same ones elsewhere."""
    a, b = on_gpu(integers(20, 8)), on_gpu(integers(8, 20))
    gemmlab.matmul(a, b)
    a[...] = integers(20, 8, seed=2)
    expected = np.asarray(a) @ np.asarray(b)
    assert np.array_equal(gemmlab.matmul(a, b), expected)
    assert np.array_equal(gemmlab.matmul(a.copy(), b), expected)


@pytest.mark.numba_cuda
@pytest.mark.ptxas
def test_arguments_are_the_words_that_a_compiled_kernel_takes():
    """An array is some words, by Numba-CUDA nine of a matrix; a number is one."""
    array, cut = (
        Block.rows_after_rows(3, 128, (4, 6), "float16"),
        Block(0, 8, (2, 3), (64, 4), "float32"),
    )
    arguments = cut, np.float32(1), 7, (array, array)

    def kernel(x, alpha, k, out):
        out[0][0, 0] = out[1][0, 1] = x[k, 1] * alpha

    text = ptx(kernel, tuple(map(machines._type_of, arguments)), (9, 0))
    taken = re.findall(r"\.param \.(\w+) ", text.partition(".entry")[2].partition(")")[0])
    noted = Noting()
    noted.launch(None, *arguments)
    assert len(noted.words) == len(taken)
    assert taken.index("f32") == len(cut.words(host_side.package())[0])
    assert noted.words[taken.index("f32")] == np.float32(1).view(np.uint32)
    if host_side.package() == "numba_cuda":
        assert noted.places == [(4, 0), (15, 3), (24, 3)]
    else:
        assert noted.places == [(0, 0), (1, 0), *((at, 3) for at in (9, 10, 16, 17))]
    assert {noted.words[at] for at, of in noted.places if of == 0} == {8}
    assert {noted.words[at] for at, of in noted.places if of == 3} == {128}


def test_panels_of_the_budget(gpu):
    a, b = integers(130, 8), integers(8, 20)
    budget = gemmlab.matmul_choice(on_gpu(a), on_gpu(b)).workspace_bytes - 1
    choice = gemmlab.matmul_choice(on_gpu(a), on_gpu(b), budget)
    assert choice.panels == (1, 128, 20)
    assert choice.workspace_bytes <= budget
    c = gemmlab.matmul(on_gpu(a), on_gpu(b), workspace_bytes=budget)
    assert np.array_equal(c, a @ b)
    assert max(gpu.cupy.taken) == choice.workspace_bytes


# ------------------------------------------------------------------------ calls that come again


def queued(gpu, bound):
    """Queue everything, and return what the driver was asked then."""
    gpu.log.clear()
    bound.queue(plans.is_recording(77))
    return [entry[0] for entry in gpu.log]


def test_what_comes_back_is_a_graph(gpu, monkeypatch):
    """One call of the driver; other values at the same addresses are read.

    A stream that itself records gets the launches: a graph in a graph is not allowed.
    """
    monkeypatch.setattr(plans, "OFTEN", 1)
    a, b = on_gpu(integers(20, 8)), on_gpu(integers(8, 20))
    c, bound, kept = calling.ready(calling.arrays.Place("cupy", 0), a, b, TERMS)
    alone = queued(gpu, bound)
    assert alone == ["memset", "launch", "launch"] * 2 + ["launch"] * 3
    a[...] = integers(20, 8, seed=3)
    assert queued(gpu, bound) == ["graph"]
    assert gpu.log[-1] == ("graph", 9, 77)
    assert np.array_equal(c, np.asarray(a) @ np.asarray(b))
    gpu.driver.capturing = 77
    assert queued(gpu, bound) == alone
    del kept


def test_where_no_graph_can_be_made_calls_are_made(gpu, monkeypatch):
    monkeypatch.setattr(plans, "OFTEN", 1)
    gpu.driver.cuGraphInstantiate = lambda graph, flags: (801, None)
    a, b = on_gpu(integers(20, 8)), on_gpu(integers(8, 20))
    c, bound, kept = calling.ready(calling.arrays.Place("cupy", 0), a, b, TERMS)
    bound.queue(records=False)
    assert bound.graph is None
    assert np.array_equal(c, np.asarray(a) @ np.asarray(b))
    del kept


def test_an_operand_is_split_once(gpu):
    """Its halves have the bits that they have in a product; of a stack here, as columns."""
    a, b = integers(2, 20, 72) / np.float32(3), integers(2, 36, 72).swapaxes(1, 2)
    a, b = on_gpu(a), on_gpu(b / np.float32(7))
    expected, held = gemmlab.matmul(a, b), gemmlab.split(b)
    gpu.log.clear()
    assert np.array_equal(gemmlab.matmul(a, held), expected)
    assert len(launches(gpu)) == 5  # scale A twice, tensor maps, multiply, lone lines
    assert held.nbytes >= 4 * b.size
    with pytest.raises(ValueError, match="workspace_bytes=9 with a split b"):
        gemmlab.matmul(a, held, 9)


def test_a_split_that_no_kernel_reads_is_the_array():
    a, b = integers(5, 7), integers(7, 3)
    held = gemmlab.split(b)
    assert (held.array is b, held.nbytes, held.shape) == (True, 0, (7, 3))
    assert np.array_equal(gemmlab.matmul(a, held), a @ b)


def test_without_pytorch_its_mode_says_what_takes_other_arrays(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ModuleNotFoundError, match=r"gemmlab\.matmul\(a, b\) takes arrays of NumPy"):
        gemmlab.fp32_from_fp16()

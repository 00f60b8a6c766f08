"""Kernels compile with numba-cuda-mlir as with Numba-CUDA: the same results, and what it takes."""

from collections import Counter
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.hardware.checks.kernels import COMPILED_BY_MLIR, METRICS, case, simulated
from benchmarks.hardware.checks.sanitizer import WRONG, unknown_to_mlir
from benchmarks.samples.realistic import CASES, is_right
from benchmarks.samples.right_kernels import trials
from benchmarks.samples.wrong_kernels import load
from gemmlab import Gemm, cuda, device as load_device, kernels, predict_time, simulate
from gemmlab.compiled.forecast import rung_listings
from gemmlab.compiled.forecast.rung_listings import usual
from gemmlab.compiled.sass import compiling
from gemmlab.compiled.sass.compiling import cubin, listing
from gemmlab.compiled.sass.execution.machine import counters, launch
from gemmlab.device import RECORDED
from gemmlab.here import numbas
from gemmlab.instructions import load_v4, shared_view, typed
from tests.support.paths import ROOT
from tests.support.rungs import arguments

MLIR = "numba-cuda-mlir"
needs_it = pytest.mark.skipif(not numbas.has_mlir(), reason="numba-cuda-mlir is not installed")
SMALL = Gemm(128, 128, 64, beta=0.5)


def executed(function, grid, block, *arguments, shared_bytes=0, **options):
    code = listing(function, arguments, compiler=MLIR, **options)
    launch(code, grid, block, *arguments, shared_bytes=shared_bytes).run(10_000_000)
    return code


@needs_it
@pytest.mark.parametrize("name", ["naive", "tiled", "vectorised", "pipelined", "mma_shared",
                                  "mma_tuned"])  # fmt: skip
def test_a_rung_is_exact_on_integers(name):
    kernel = kernels.get(name)
    problem, tiling = usual(kernel, SMALL), kernel.choose(None)
    operands = problem.operands(kind="integers")
    given = arguments(problem, operands)
    options = {**kernel.compile(tiling)}
    options.pop("max_registers", None)
    executed(
        kernel.function(problem, tiling, (9, 0)),
        *kernel.launch(problem, tiling, load_device(RECORDED)),
        *given, shared_bytes=kernel.dynamic_shared_bytes(problem, tiling), **options,
    )  # fmt: skip
    assert np.array_equal(given[-1], problem.reference(operands))


OTHERS = (
    "reductions.max_by_shuffles_in_two_levels", "scans.scan_of_blelloch",
    "simulation.wavelets_of_haar",
)  # fmt: skip


@needs_it
@pytest.mark.parametrize("name", OTHERS)
def test_kernels_of_others_compute_the_same(name):
    assert is_right(CASES[name](executed))


@needs_it
def test_a_shared_view_and_a_wide_load_have_their_meaning():
    def turned(x, y):
        here = shared_view((4, 32), np.float32, 256)
        lane = cuda.threadIdx.x
        four = load_v4(x, lane, 0)
        for i in range(4):
            here[i, lane] = four[i]
        cuda.syncthreads()
        for i in range(4):
            y[i, 31 - lane] = here[i, lane]

    x, y = np.arange(128, dtype=np.float32).reshape(32, 4), np.zeros((4, 32), np.float32)
    code = executed(turned, 1, 32, x, y, shared_bytes=768)
    assert np.array_equal(y, x.T[:, ::-1])
    assert any(i.opcode.startswith("LDG.E.128") for i in code.instructions)


@needs_it
def test_its_code_predicts_times():
    def doubled(x, y):
        i = cuda.grid(1)
        if i < x.size:
            y[i] = 2 * x[i]

    x, y = np.zeros((2, 1 << 20), np.float32)
    seconds = predict_time(doubled, x.size // 256, 256, x, y, compiler=MLIR).seconds
    least = 2 * x.nbytes / load_device("h200").dram_bandwidth
    assert 0.5 * least < seconds < 20 * least


@needs_it
def test_a_kernel_of_its_own_jit_is_its_to_compile():
    from numba_cuda_mlir import cuda as its

    @its.jit
    def filled(x):
        x[its.grid(1)] = 3

    x = np.zeros(64, np.float32)
    code = listing(filled, (x,))
    assert code.memrefs
    launch(code, 2, 32, x).run()
    assert (x == 3).all()


@needs_it
def test_what_is_wrong_is_told_as_numba_cuda_tells_it():
    def wrong(x):
        load_v4(x, 0.5)

    with pytest.raises(Exception, match="load_v4: an index of array is .*, not an integer"):
        listing(wrong, (np.zeros(4, np.float32),), compiler=MLIR)


def rows():
    """A row of a local array of known strides."""

    def kernel(x):
        held = cuda.local.array((2, 4, 4), np.float32)
        for i in range(32):
            held[i // 16, i // 4 % 4, i % 4] = x[i]
        row = held[0]
        x[0] = row[1, 2]

    return kernel


def shared():
    """A shared array of a device function."""

    @cuda.jit(device=True)
    def turned_around(x):
        held = cuda.shared.array(32, np.float32)
        held[cuda.threadIdx.x] = x[cuda.threadIdx.x]
        cuda.syncthreads()
        return held[31 - cuda.threadIdx.x]

    def kernel(x):
        turned = turned_around(x)
        x[cuda.threadIdx.x] = turned

    return kernel


@needs_it
@pytest.mark.parametrize("made", [rows, shared])
def test_each_fault_that_is_mended_is_still_there(made, monkeypatch):
    """A release that needs a mend no more fails here: then take it away."""
    from gemmlab.instructions.numba_cuda_mlir import arrays

    x = np.zeros(32, np.float32)
    listing(made(), (x,), compiler=MLIR)
    monkeypatch.setattr(arrays, "mends", tuple)
    with pytest.raises(Exception, match=r"compiler bug|Invalid MLIR"):
        listing(made(), (x,), compiler=MLIR)


@needs_it
def test_variables_in_local_memory_are_mended_and_need_it(monkeypatch):
    """The launch that splits operands has a loop in a device function, in a branch."""
    from gemmlab.instructions.numba_cuda_mlir import arrays

    kernel = kernels.get("tcec_split")
    problem, tiling = usual(kernel, Gemm(256, 256, 256)), kernel.choose(None)
    function = kernel.before[0].function(problem, tiling, (9, 0))
    given = rung_listings.arguments(kernel, problem, tiling)
    assert cubin(function, given, compiler=MLIR)[1].local_bytes == 0
    monkeypatch.setattr(arrays, "mends", tuple)
    assert cubin(function, given, compiler=MLIR)[1].local_bytes > 0


@needs_it
def test_functions_that_no_kernel_calls_any_more_go():
    from gemmlab.instructions.numba_cuda_mlir import arrays

    signature = (compiling._mlirs_type(np.zeros(32, np.float32)),)
    assert ".func" not in compiling.to_ptx(MLIR)(shared(), signature, (9, 0))
    functions = {"kernel": "call @a", "a": "@b", "b": "", "c": "@b"}
    assert arrays.reached(functions, ["kernel"]) == {"kernel", "a", "b"}


@needs_it
def test_a_kernel_that_is_linked_to_nothing_is_assembled_whole(monkeypatch):
    from gemmlab.instructions import numba_cuda_mlir

    text = compiling.to_ptx(MLIR)(
        shared(), (compiling._mlirs_type(np.zeros(32, np.float32)),), (9, 0)
    )
    alone = SimpleNamespace(
        _object_codes=[SimpleNamespace(code_type="ptx", code=text.encode() + b"\0")],
        _pending_cu=[], _debug=False, arch="sm_90", max_registers=None,
    )  # fmt: skip
    assert numba_cuda_mlir._completed(alone).code.startswith(b"\x7fELF")
    monkeypatch.setattr(numba_cuda_mlir, "_complete", lambda linker: "linked")
    for parts in (alone._object_codes * 2, [SimpleNamespace(code_type="cubin", code=b"")]):
        several = SimpleNamespace(**vars(alone) | {"_object_codes": parts})
        assert numba_cuda_mlir._completed(several) == "linked"


def counted_down(x, y):
    y[x[cuda.threadIdx.x]] = cuda.threadIdx.x


def added_up(x, y):
    cuda.atomic.add(y, x[cuda.threadIdx.x], cuda.threadIdx.x)


@needs_it
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
def test_an_index_without_a_sign_has_none(dtype, monkeypatch):
    from gemmlab.instructions.numba_cuda_mlir import arrays

    x, y = np.arange(255, 223, -1).astype(dtype), np.zeros(256, np.int32)
    executed(counted_down, 1, 32, x, y)
    assert np.array_equal(y[224:], np.arange(31, -1, -1))
    if dtype == np.uint8:  # of which 128 and more have the bit of a sign
        compiling._listing.cache_clear()
        monkeypatch.setattr(arrays, "mends", tuple)
        with pytest.raises(IndexError, match="one access to several arrays|beyond"):
            executed(counted_down, 1, 32, x, y)
        compiling._listing.cache_clear()


def of_three(x, y):
    i = cuda.threadIdx.x
    for step in (-1, 0, 1):
        if 0 < i < 31:
            y[i] += x[i + step]


def from_the_next(x, y):
    i = cuda.threadIdx.x
    y[i] = cuda.shfl_down_sync(0xFFFFFFFF, x[i], 1)


def to_even(x, y):
    i = cuda.threadIdx.x
    y[i] = round(i - 15.5)


def at_the_end(x, y):
    i = cuda.threadIdx.x
    y[i] = x[-4:100].size


def by_a_condition(x, y):
    part = cuda.shared.array(32, np.int64)
    i = cuda.threadIdx.x
    part[i] = 0
    cuda.syncthreads()
    cuda.atomic.add(part, (2 if -2 <= 1 < 1 else 3) % 32, 1)
    cuda.syncthreads()
    y[i] = part[i]


def stored(kernel):
    compiling._listing.cache_clear()
    x, y = np.arange(32) + 1 / 3, np.zeros(32)
    right = y.copy()
    simulate(kernel, 1, 32, x, right)
    executed(kernel, 1, 32, x, y)
    return y, right


@needs_it
@pytest.mark.parametrize(
    "kernel", [of_three, from_the_next, to_even], ids=lambda kernel: kernel.__name__
)
def test_what_was_wrong_and_silent_is_right(kernel, monkeypatch):
    """Numbers of a tuple have a sign, a shuffle has 64 bits, and `round` goes to even numbers;
    without the mends they do not.
    """
    from gemmlab.instructions.numba_cuda_mlir import arrays

    y, right = stored(kernel)
    assert np.array_equal(y, right)
    monkeypatch.setattr(arrays, "mends", tuple)
    try:
        y, right = stored(kernel)
    except IndexError:
        return
    assert not np.array_equal(y, right)


@needs_it
def test_a_slice_is_not_cut_off_at_the_end():
    """A fault of 0.6.0 that is not mended: a release without it fails here; the page names it."""
    y, right = stored(at_the_end)
    assert (right == 4).all()
    assert not np.array_equal(y, right)


@needs_it
def test_an_atomic_of_shared_memory_at_a_place_by_a_condition_goes_elsewhere():
    """A fault of 0.6.0 that is not mended: a release without it fails here; the page names it."""
    with pytest.raises(IndexError, match="no array"):
        stored(by_a_condition)


@needs_it
def test_an_atomic_reads_an_index_of_8_bits_with_a_sign():
    """A fault of 0.6.0 that is not mended: a release without it fails here; the page names it."""
    x, y = np.full(32, 255, np.uint8), np.zeros(256, np.int32)
    with pytest.raises(IndexError, match="beyond|several arrays|no array"):
        executed(added_up, 1, 32, x, y)
    executed(added_up, 1, 32, x.astype(np.int32), y)
    assert y[255] == np.arange(32).sum()


def test_a_compiler_has_one_of_three_names():
    with pytest.raises(
        ValueError, match="compiler='nvcc'; use one of auto, numba-cuda, numba-cuda"
    ):
        listing(rows(), (np.zeros(8, np.float32),), compiler="nvcc")


def test_who_asks_for_a_type_is_found_among_the_callers():
    assert typed.mlir_asks() is False
    asked = SimpleNamespace()
    exec("def ask(f): return f()", {"__name__": "numba_cuda_mlir.typing"}, vars(asked))
    assert asked.ask(typed.mlir_asks) is True


def in_counted(x):
    for i, value in enumerate((x[0], x[1])):
        x[i] = value


def in_divided(x):
    x[0], x[1] = divmod(int(x[2]), 3)


def in_least_of_three(x):
    x[0] = min(x[1], x[2], x[3])


def in_fenced(x):
    x[0] = 1
    cuda.threadfence()
    x[1] = 2


LACKS = {"enumerate": in_counted, "divmod": in_divided, "min": in_least_of_three,
         "threadfence": in_fenced}  # fmt: skip


@needs_it
@pytest.mark.parametrize("name", LACKS)
def test_the_page_says_what_it_lacks(name):
    with pytest.raises(Exception, match=f"compiler bug|{name}"):
        listing(LACKS[name], (np.zeros(4, np.float32),), compiler=MLIR)
    assert f"`{name}" in (ROOT / "book" / "compilers.md").read_text("utf-8").replace("cuda.", "")


@needs_it
@pytest.mark.parametrize("name", ["last_block_fence_of_the_block", "lock_no_fence"])
def test_kernels_that_the_sanitizer_is_not_given_are_refused(name):
    wrong = load(WRONG[name])
    assert unknown_to_mlir(name)
    with pytest.raises(Exception, match="compiler bug"):
        listing(wrong.kernel, next(iter(trials(wrong.BASE))).arguments, compiler=MLIR)


@needs_it
@pytest.mark.parametrize("name", ["tiled", "stream_k", "mma_swizzled"])
def test_its_code_asks_memory_for_what_the_check_expects(name):
    device = load_device("h100_sxm")
    kernel, problem, tiling = case(name, device)
    found = Counter()
    for one in kernel.launches:
        code = rung_listings.compiled_launch(
            one, kernel, problem, tiling, device.compute_capability, partial(listing, compiler=MLIR)
        )
        found += counters(
            launch(
                code, *one.launch(problem, tiling, device),
                *rung_listings.arguments(kernel, problem, tiling),
                shared_bytes=one.dynamic_shared_bytes(problem, tiling), values=False,
            ).run()
        )  # fmt: skip
    differs, _ = COMPILED_BY_MLIR.get(name, ({}, ""))
    expected = {key: n * differs.get(key, 1) for key, n in simulated(name, device).items()}
    assert found == {key: n for key, n in expected.items() if key in METRICS and n}


@needs_it
def test_its_vectorize_is_not_there():
    from numba_cuda_mlir import cuda as its

    with pytest.raises(NotImplementedError, match="vectorize"):
        its.vectorize()

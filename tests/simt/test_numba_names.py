"""Names of `numba.cuda` that public programs use: what they mean here is what they mean there."""

import io
import math
import re
from fractions import Fraction

import numpy as np
import pytest

from gemmlab.programs.running import in_place_of_numba, texts_kept
from gemmlab.simt import cuda, simulate
from gemmlab.simt.cuda.arrays import DeviceArray
from gemmlab.simt.cuda.vector_types import vector_types
from gemmlab.simt.numbers import half, libdevice


def first(kernel, *args, dtype=np.float64):
    """What a kernel of one thread writes to the first elements of its first argument."""
    out = np.zeros(4, dtype)
    simulate(kernel, 1, 1, out, *args)
    return out.tolist()


# --------------------------------------------------------------------------- functions of numbers


def test_libdevice_has_the_types_of_numbas_list_and_the_values_of_math():
    types = pytest.importorskip("numba.cuda.libdevicefuncs").functions
    bessel = {f"{k}{n}{tail}" for k in "jy" for n in "01n" for tail in ("", "f")}
    assert {name.removeprefix("__nv_") for name in types} - set(libdevice.TABLE) == bessel
    for name in libdevice.TABLE:
        result, arguments = types[f"__nv_{name}"]
        with np.errstate(all="ignore"):
            found = libdevice.function(name)(*(3 for a in arguments if not a.is_ptr))
        found = found if isinstance(found, tuple) else (found,)
        named = [result] * (str(result) != "none") + [a.ty for a in arguments if a.is_ptr]
        assert [str(value.dtype) for value in found] == list(map(str, named)), name
    for name in ("cos", "exp", "log", "erf", "lgamma", "tanh"):
        assert libdevice.function(name)(0.75) == pytest.approx(getattr(math, name)(0.75), rel=1e-15)
    for name in ("fast_cosf", "sinf", "fast_expf", "log2f"):
        plain = name.removeprefix("fast_").removesuffix("f")
        assert libdevice.function(name)(0.75) == pytest.approx(getattr(math, plain)(0.75), rel=1e-6)


@pytest.mark.parametrize("kind", ["f", "d"])
@pytest.mark.parametrize("op", ["add", "mul", "div"])
def test_libdevice_rounds_as_its_names_say(kind, op):
    """Sides of the exact result, in numbers wide enough to hold it."""
    narrow = np.float32 if kind == "f" else np.float64
    rng = np.random.default_rng(1)
    exact = {"add": lambda a, b: a + b, "mul": lambda a, b: a * b, "div": lambda a, b: a / b}[op]
    for a, b in rng.normal(size=(40, 2)).astype(narrow):
        want = exact(*map(Fraction, map(float, (a, b))))
        down, near, up, zero = (
            libdevice.function(f"{kind}{op}_{way}")(a, b) for way in ("rd", "rn", "ru", "rz")
        )
        assert Fraction(float(down)) <= want <= Fraction(float(up))
        assert near in (down, up)
        assert np.nextafter(down, up, dtype=narrow) == up
        assert zero == (down if want > 0 else up)


def test_functions_of_half_numbers_round_once():
    def kernel(out, a, b):
        out[0] = cuda.fp16.hadd(a, b)
        out[1] = cuda.fp16.hfma(a, b, a)
        out[2] = cuda.fp16.hrcp(b)
        out[3] = cuda.fp16.hlt(a, b) and not cuda.fp16.heq(a, b)

    a, b = np.float16(1.001), np.float16(3.7)
    exact = float(a) * float(b) + float(a)
    assert first(kernel, a, b) == [a + b, np.float16(exact), np.float16(1 / float(b)), 1]
    assert {"hsin", "hmax", "hrsqrt"} < set(half.TABLE)


def test_vectors_are_made_of_numbers_and_of_vectors():
    def kernel(out):
        pair = cuda.float2(1.5, 2)
        both = cuda.float32x4(pair, cuda.float32x2(3, 4))
        out[0], out[1] = both.x, both.w
        out[2] = cuda.uchar1(257).x

    assert first(kernel) == [1.5, 4, 1, 0]
    assert vector_types["int16x3"].num_elements == 3
    with pytest.raises(TypeError, match="float32x4 takes 4 numbers, not 1"):
        first(lambda out: cuda.float4(1))


# --------------------------------------------------------------------------- functions of arrays


def test_guvectorize_calls_a_function_for_each_place_of_the_outer_dimensions():
    @cuda.guvectorize(["(float32[:], float32, float32[:])"], "(n),()->(n)")
    def scaled(x, a, out):
        for i in range(x.size):
            out[i] = a * x[i]

    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(scaled(x, np.float32([2, 3])), [[0, 2, 4], [9, 12, 15]])
    np.testing.assert_array_equal(scaled(x, np.float32(2)), 2 * x)
    out = cuda.device_array((2, 3), np.float32)
    assert scaled(cuda.to_device(x), np.float32(2), out=out) is out
    with pytest.raises(TypeError, match="accepts 2 positional arguments .* Got 1 pos"):
        scaled(x)
    with pytest.raises(ValueError, match="arg #1: outer dimension mismatch"):
        scaled(x, np.ones(3, np.float32))
    with pytest.raises(TypeError, match="no matching signature"):
        scaled(x.astype(np.int8), np.float32(2))


# --------------------------------------------------------------------------- arrays


class Foreign:
    """An array of another library, which tells where its memory is."""

    def __init__(self, array):
        self.__cuda_array_interface__ = array.__cuda_array_interface__


def test_arrays_that_tell_of_their_memory_are_that_memory():
    @cuda.jit
    def double(x):
        x[cuda.grid(1)] *= 2

    array = cuda.to_device(np.arange(4.0))
    double[1, 2](Foreign(array[1:3]))
    assert array.copy_to_host().tolist() == [0, 2, 4, 3]
    view = cuda.as_cuda_array(Foreign(array[::2]))
    assert isinstance(view, DeviceArray)
    assert view.copy_to_host().tolist() == [0, 4]
    elsewhere = {"shape": (1,), "typestr": "<f8", "data": (64, False), "version": 3}
    with pytest.raises(TypeError, match="not the simulated GPU's"):
        cuda.from_cuda_array_interface(elsewhere)
    with pytest.raises(TypeError, match="memory at None is not"):  # cudaMalloc that failed
        cuda.from_cuda_array_interface(elsewhere | {"data": (None, False)})
    np.testing.assert_allclose(array, [0, 2, 4, 3])


# --------------------------------------------------------------------------- programs


def test_a_program_finds_numbas_types_and_errors():
    pytest.importorskip("numba_cuda")
    with in_place_of_numba():
        from numba import cuda as simulated
        from numba.core.errors import TypingError
        from numba.cuda import types
        from numba.cuda.core.errors import TypingError as TypingErrorOfCuda
        from numba.cuda.cudadrv.devicearray import DeviceNDArray

        pair = types.UniTuple(types.float32, 2)
        assert str(pair) == "UniTuple(float32 x 2)"
        assert isinstance(simulated.to_device(np.ones(1)), DeviceNDArray)
        assert simulated.HAS_NUMBA
        assert simulated.config.ENABLE_CUDASIM == 0

        @simulated.jit
        def kernel(x):
            x[0] = x[0, 0]

        gpu = simulated.cudadrv.driver.Device(0)
        assert (gpu, gpu.WARP_SIZE) == (simulated.get_current_device(), 32)
        assert "simulated" in str(simulated.gpus[0]._device.name)
        with pytest.raises(IndexError, match="device 1 is not there"):
            simulated.cudadrv.driver.Device(1)

        for error in (TypingError, TypingErrorOfCuda, Exception):
            with pytest.raises(error, match=r"line \d+"):
                kernel[1, 1](np.zeros(1))


def test_the_text_that_a_program_executes_is_the_source_of_its_kernels():
    scope = {"cuda": cuda}
    with texts_kept():
        exec("def kernel(x):\n    x[0] = 7\n", scope)
        exec("value = 3")
    assert locals()["value"] == 3
    x = np.zeros(1)
    simulate(scope["kernel"], 1, 1, x)
    assert x[0] == 7


@pytest.mark.numba_cuda
def test_what_numba_compiles_of_a_kernel():
    from numba.cuda import types

    @cuda.jit("void(float32[:], float32)")
    def kernel(x, a):
        x[cuda.grid(1)] = a

    [(given, text)] = kernel.inspect_asm().items()
    assert ".target sm_90" in text
    assert "define" in kernel.inspect_llvm(given)
    assert kernel.overloads[given].local_mem_per_thread == kernel.get_local_mem_per_thread()
    assert 4 <= kernel.get_regs_per_thread() <= 32
    assert "EXIT" in kernel.inspect_sass(given)
    typed = io.StringIO()
    kernel.inspect_types(typed)
    assert re.search(r"a = arg\(1, name=a\) +:: float32\b", typed.getvalue())
    text, result = cuda.compile_ptx(lambda a: a + a, (types.float32,), device=True, cc=(8, 0))
    assert (".target sm_80" in text, str(result)) == (True, "float32")

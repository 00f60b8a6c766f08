"""Random numbers in kernels have the bits of Numba's generator."""

import numpy as np
import pytest
from numpy import float32

from gemmlab import cuda, simulate
from gemmlab.simt import cuda as simulated
from gemmlab.simt.cuda import random, types

NAMES = [
    "xoroshiro128p_uniform_float32",
    "xoroshiro128p_uniform_float64",
    "xoroshiro128p_normal_float32",
    "xoroshiro128p_normal_float64",
]


@pytest.fixture(scope="module")
def numbas():
    return pytest.importorskip("numba.cuda.random")


def draws(function):
    def kernel(states, out):
        i = cuda.grid(1)
        if i < out.shape[1]:
            for k in range(out.shape[0]):
                out[k, i] = function(states, i)

    return kernel


@pytest.mark.parametrize(("n", "seed", "start"), [(1, 1, 0), (37, 12345, 0), (5, 2**63 + 7, 11)])
def test_states_are_those_of_numba(numbas, n, seed, start):
    expected = np.empty(n, random.xoroshiro128p_dtype)
    numbas.init_xoroshiro128p_states_cpu(expected, np.uint64(seed), start)
    np.testing.assert_array_equal(
        random.create_xoroshiro128p_states(n, seed, start).copy_to_host(), expected
    )


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("whose", ["ours", "numbas"])
def test_streams_are_those_of_numba(numbas, name, whose):
    numba_function = getattr(numbas, name)
    function = getattr(random, name) if whose == "ours" else numba_function
    states = random.create_xoroshiro128p_states(40, seed=3)
    copies, dtype = states.copy_to_host(), np.dtype(name.rpartition("_")[2])
    out, expected = np.zeros((2, 6, 40), dtype)
    report = simulate(draws(function), 2, 32, states, out)
    assert report.hazards == []
    for k in range(6):
        for i in range(40):
            expected[k, i] = numba_function(copies, i)
    np.testing.assert_array_equal(states.copy_to_host(), copies)
    exact = "uniform" in name  # a normal one needs logarithms, which libraries round as they like
    np.testing.assert_allclose(out, expected, rtol=0 if exact else 1e-6)
    assert 0.25 < out.std() < 1.5


def test_a_state_is_read_and_written_as_two_words():
    """Two loads and two stores of 8 bytes, 16 apart: half of each sector."""
    states = random.create_xoroshiro128p_states(32, seed=1)
    kernel = draws(random.xoroshiro128p_uniform_float32)
    report = simulate(kernel, 1, 32, states, np.zeros((1, 32), float32))
    counters = report.counters
    assert (counters["global_load_requests"], counters["global_load_sectors"]) == (2, 32)
    assert (counters["global_store_requests"], counters["global_store_sectors"]) == (3, 36)


def shared_state(states, out):
    i = cuda.grid(1)
    out[i] = random.xoroshiro128p_uniform_float32(states, i // 2)


def test_two_threads_with_one_state_are_a_race():
    states = random.create_xoroshiro128p_states(32, seed=1)
    report = simulate(shared_state, 1, 32, states, np.zeros(32), on_hazard="collect")
    assert {h.kind for h in report.hazards} == {"global-race"}


def draw(states, out):
    i = cuda.grid(1)
    out[i] = random.xoroshiro128p_uniform_float32(states, i)


@pytest.mark.parametrize("whose", ["ours", pytest.param("numbas", marks=pytest.mark.numba_cuda)])
def test_states_in_a_signature(whose, request):
    if whose == "ours":
        state, void, number = random.xoroshiro128p_type, types.void, types.float32
    else:
        state = request.getfixturevalue("numbas").xoroshiro128p_type
        from numba.cuda.types import float32 as number, void
    out = np.zeros(32, float32)
    kernel = simulated.jit(void(state[:], number[:]))(draw)
    kernel[1, 32](random.create_xoroshiro128p_states(32, seed=1), out)
    assert 0 < out.min() < out.max() < 1
    with pytest.raises(TypeError, match=r"draw takes \(object\[:\], float32\[:\]\)"):
        kernel[1, 32](np.zeros(32), out)

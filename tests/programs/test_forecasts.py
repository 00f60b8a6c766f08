"""`gemmlab simulate --device`: launches of a program are predicted once it has ended."""

import json
import re
from types import SimpleNamespace

import numpy as np
import pytest

from gemmlab import cli
from gemmlab.compiled.sass.listing import instructions
from gemmlab.compiled.sm.facts import known
from gemmlab.programs import formats, running
from gemmlab.programs.forecasts import FirstCalls, LaunchForecast, code_of, forecasts
from gemmlab.simt import cuda
from gemmlab.simt.cuda.kernels import Call, watching
from tests.programs.test_simulate import RIGHT, program, simulate  # noqa: F401 (a fixture)

WITH_PARTS = """
import numpy as np
from numba import cuda, float32

@cuda.jit(device=True)
def twice(v):
    return v * float32(2)

@cuda.jit(fastmath=True)
def double(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] = twice(x[i])

@cuda.jit
def walks(x, places):
    i = cuda.grid(1)
    while i < places.size:
        x[i % 128] += float32(1)
        places[i] = 0
        i += 128

@cuda.jit
def mixed(x):
    which = x
    if x.size > 1:
        which = 1
    x[0] = float32(which)

x = cuda.to_device(np.ones(128, np.float32))
double[2, 64](x)
double[2, 64](x)
walks[1, 128](x, cuda.to_device(np.ones(256, np.int32)))
mixed[1, 1](x)
print(x.copy_to_host().sum())
"""


@pytest.mark.ptxas
def test_launches_of_a_program_are_predicted(program):  # noqa: F811
    answer = simulate("--device", "h200", program(WITH_PARTS))
    assert answer.returncode == 0, answer.stderr
    told = answer.stderr[answer.stderr.index("One launch") :].split("\n\n")[0]
    heading, double, walks, mixed = re.split(r"\n  (?=\w)", told)
    assert heading == "One launch on an NVIDIA H200 SXM, predicted from its compiled code:"
    first, *more = double.splitlines()
    assert re.fullmatch(r"double \(program.py:9\), grid 2, block 64: [\d.]+ µs", first)
    assert "of the issue slots issue an instruction" in more[0]
    assert re.fullmatch(r"    \d+ registers a thread; an SM holds 64 of 64 warps", more[-1])
    assert walks.startswith("walks (program.py:15), grid 1, block 128: ")
    first, *more = mixed.splitlines()
    assert first == "mixed (program.py:23), grid 1, block 1: nothing"
    assert more[0].startswith("    Numba cannot compile it for the GPU: ")


@pytest.mark.ptxas
def test_a_prediction_is_data_and_a_paragraph(program):  # noqa: F811
    answer = simulate("--device=h200", "--format=json", program(RIGHT))
    told = json.loads(answer.stderr)
    assert told["predicted_for"] == "h200"
    assert [(p["kernel"], p["grid"]) for p in told["predicted"]] == [
        ("double", [2, 1, 1]),
        ("double", [1, 1, 1]),
    ]
    assert all(1e-7 < p["seconds"] < 1e-4 for p in told["predicted"])
    page = simulate("--device=h200", "--format=html", program(RIGHT)).stderr
    assert "<p>double (program.py:6), grid 2, block 64: " in page


def test_without_a_device_nothing_is_kept_or_said(program):  # noqa: F811
    outcome = running.run(str(program("print(1)")))
    assert (outcome.device, outcome.predicted, formats.predictions(outcome)) == (None, [], [])


def test_an_unknown_gpu_is_refused_before_the_program_runs(program, capsys):  # noqa: F811
    path = str(program("print('ran')"))
    for name in ("v100", "a100", "h2000"):
        assert cli.main(["simulate", "--device", name, path]) == 1
        out, err = capsys.readouterr()
        assert out == ""
        told = f"no launch is predicted for this GPU; use {', '.join(known())}"
        assert err == f"gemmlab: --device {name}: {told}\n"


def test_without_the_tools_it_says_what_to_install(program, capsys, monkeypatch):  # noqa: F811
    monkeypatch.setattr(cli, "lacking", lambda: "there is no ptxas; install it")
    assert cli.main(["simulate", "--device", "h200", str(program("print('ran')"))]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "--device compiles the kernels: there is no ptxas; install it" in err


@cuda.jit
def counts_down(x):
    i = cuda.grid(1)
    while x[i] > 0:
        x[i] -= 1


def test_arguments_are_kept_as_they_were():
    """What a loop does depends on them: the launch itself brings them to zero."""
    x, first = np.full(32, 3, np.int32), FirstCalls()
    with watching(lambda launched: None, first.keep):
        for _ in range(2):
            counts_down[1, 32](x)
        counts_down[1, (32, 1)](x)
        counts_down[2, 16](x)
    assert (x == 0).all()
    one, other = first.calls.values()
    assert (one.arguments[0] == 3).all()
    assert (other.arguments[0] == 0).all()
    assert type(one.arguments[0]) is np.ndarray


def test_arrays_of_the_device_become_arrays_of_the_host():
    first = FirstCalls()
    first.keep(Call(counts_down, 1, 32, (cuda.to_device(np.ones(4)), 7), 0))
    [call] = first.calls.values()
    array, number = call.arguments
    assert (type(array), number) == (np.ndarray, 7)


@pytest.mark.parametrize("error", [RuntimeError("no end"), NotImplementedError("LDGMC")])
def test_what_cannot_be_predicted_has_its_reason(monkeypatch, error):
    from gemmlab.compiled.forecast import kernel as time

    def refuse(*arguments, **options):
        raise error

    monkeypatch.setattr(time, "predict_time", refuse)
    [found] = forecasts([Call(counts_down, 1, 32, (), 0)], "h200")
    expected = f"RuntimeError: {error}" if type(error) is RuntimeError else str(error)
    place = f"test_forecasts.py:{counts_down.py_func.__code__.co_firstlineno}"
    kind = "counts_down", place, (1, 1, 1), (32, 1, 1)
    assert found == LaunchForecast(*kind, None, expected)
    outcome = SimpleNamespace(device="h200", predicted=[found])
    told = f"counts_down ({place}), grid 1, block 32: nothing\n{expected}"
    assert formats.predictions(outcome)[1] == told


def test_options_that_change_the_code_are_handed_on(monkeypatch):
    from gemmlab.compiled.forecast import kernel as time

    seen = {}

    def note(*arguments, **options):
        seen.update(options)
        raise RuntimeError

    monkeypatch.setattr(time, "predict_time", note)
    fast = cuda.jit(fastmath=True, max_registers=32, cache=True)(counts_down.py_func)
    forecasts([Call(fast, 1, 32, (), 48)], "h200")
    assert seen == {"device": "h200", "shared_bytes": 48, "fastmath": True, "max_registers": 32}


@cuda.jit(device=True, inline=True)
def twice(v):
    return 2 * v


@cuda.jit
def drawn(states, x):
    i = cuda.grid(1)
    x[i] = twice(cuda.random.xoroshiro128p_uniform_float32(states, i))


@cuda.jit
def steps_of_all(x):
    x[cuda.grid(1)] = 1
    cuda.cg.this_grid().sync()


@pytest.mark.numba_cuda
@pytest.mark.ptxas
def test_random_numbers_and_inlined_functions_are_predicted_and_a_wait_of_the_grid_is_refused():
    x, states = np.zeros(32, np.float32), cuda.random.create_xoroshiro128p_states(32, seed=1)
    calls, kept = [Call(drawn, 1, 32, (np.array(states), x), 0)], FirstCalls()
    calls.append(Call(steps_of_all, 1, 32, (x,), 0))
    with watching(lambda launched: None, kept.keep):
        cuda.reduce(lambda a, b: a + b)(x)
    random, waits, stands_in = forecasts([*calls, *kept.calls.values()], "h200")
    assert 1e-6 < random.seconds < 1e-4, random.text
    assert waits.seconds is None
    assert "a kernel that waits for the whole grid" in waits.text
    assert stands_in.text.startswith("it stands for a kernel of Numba's own")


def compiled(registers=32, local=0, shared=0, text="", used=0.1, seconds=1e-5, blocks=1):
    """A forecast as far as the rules ask: what was compiled, and a hundred slots of an SM."""
    code = instructions(text or "00000  ------ W- R- - S04  IADD3 R2, R2, R2, RZ")
    issued = np.full(len(code), int(100 * used) // len(code))
    return SimpleNamespace(
        listing=SimpleNamespace(
            registers=registers, local_bytes=local, shared_bytes=shared, instructions=code
        ),
        result=SimpleNamespace(used={"integer": int(100 * used)}, slots=100, issued=issued),
        times={"sm": seconds},
        launch=2e-6,
        share=SimpleNamespace(blocks=blocks, grid=(132 * blocks, 1, 1)),
        sampled=24,
    )


SPILLED = "00000  ------ W- R- - S04  STL [R1], R2"
PAIRS = """
    00000  ------ W- R- - S04  IADD3 R2, P0, R2, R4, RZ
    00010  ------ W- R- - S04  IADD3.X R3, R3, R5, RZ, P0, !PT
"""


@pytest.mark.parametrize(
    ("found", "grid", "block", "told"),
    [
        (compiled(), 9999, 256, ["32 registers a thread; an SM holds 64 of 64 warps"]),
        (compiled(blocks=99), 13068, 256, ["64 of 64 warps; 24 blocks stand for all 13,068"]),
        (compiled(168), 9999, 256, ["an SM holds 8 of 64", "because a thread takes 168 registers"]),
        (compiled(168), 99, 256, ["an SM holds 8 of 64 warps", "33 of the 132 SMs have nothing"]),
        (compiled(shared=40_000), 9999, 64, ["10 of 64", "because a block takes 40,000 bytes"]),
        (compiled(255, 48, text=SPILLED), 132, 64, ["8 of 64", "spills: 48 bytes of a thread"]),
        (compiled(used=0.4, text=PAIRS), 9999, 256, ["64 of 64", "40% of the issue slots"]),
        (compiled(seconds=1e-6), 9, 256, ["64 of 64"]),
    ],
)
def test_compiled_code_says_what_it_takes_and_what_of_that_may_make_it_slow(
    found, grid, block, told
):
    lines = code_of(found, Call(counts_down, grid, block, (), 0), "h200")
    assert len(lines) == len(told), lines
    assert all(words in line for words, line in zip(told, lines, strict=True)), lines


LARGE = """
import numpy as np
from numba import cuda

@cuda.jit
def ones(x):
    x[cuda.grid(1)] = 1

x = cuda.device_array(4096 * 256, np.uint8)
ones[4096, 256](x)
assert x.copy_to_host()[[0, -1]].tolist() == [1, 1]
ones[2048, 256](x)
ones[4, 256](x)
"""


def test_of_a_large_launch_a_sample_is_simulated_where_that_is_asked_for(program):  # noqa: F811
    outcome = running.run(str(program(LARGE)), sample=True)
    assert outcome.status == 0
    large, medium, small = (row.report for row in outcome.account.rows)
    assert (large.sampled, medium.sampled, small.sampled) == (1024, 1024, None)
    assert large.counters["global_store_bytes"] == 1024 * 256
    assert not large.notes
    text = formats.as_text(outcome)
    assert "1,024 of 4,096 blocks were simulated, the first and the last" in text


def test_a_sample_is_for_a_prediction(program, capsys):  # noqa: F811
    assert cli.main(["simulate", "--sample", str(program("print('ran')"))]) == 1
    assert capsys.readouterr() == ("", "gemmlab: --sample is for predictions; say --device, too\n")

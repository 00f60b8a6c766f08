"""`gemmlab predict`: programs and compiled kernels, what is printed and how it ends."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.forecast.compiled.cubins import kept
from gemmlab import cuda, predict_time
from gemmlab.cli import main
from gemmlab.compiled.forecast.source_page import text_of
from gemmlab.measure.measurement import duration
from gemmlab.programs import predicting
from gemmlab.programs.predicted import WIDTH
from gemmlab.simt.cuda.kernels import Call, watching

PROGRAM = """
import sys
import numpy as np
from numba import cuda

@cuda.jit
def twice(x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = 2 * x[i]

@cuda.jit
def chosen(x, y):
    i = cuda.grid(1)
    if i < x.size and x[i] > 0:
        y[i] = 1

x, y = np.ones((2, 4096), np.float32)
twice[16, 256](x, y)
twice[16, 256](x, y)
chosen[16, 256](y, x)
print("sum", y.sum(), sys.argv[1:])
"""


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return str(path)


@pytest.fixture
def cubin(tmp_path):
    path = tmp_path / "saxpy.cubin"
    path.write_bytes(kept()["saxpy"].cubin)
    return str(path)


ARGS = ("--arg", "int32:65536", "--arg", "float32:2", *2 * ("--arg", "float32[65536]"))


@pytest.mark.ptxas
@pytest.mark.measuring
def test_launches_of_a_program_are_forecast_once_a_kind(program, capsys):
    assert main(["predict", program, "--device", "h200,h100_sxm", "--", "-n", "3"]) == 0
    out, err = capsys.readouterr()
    assert "sum 8192.0 ['-n', '3']" in err
    lines = out.splitlines()
    assert max(map(len, lines)) <= WIDTH
    assert lines[0] == "twice (program.py:6), grid 16, block 256, 2 such launches"
    assert [line.split()[0] for line in lines[1:3]] == ["h200", "h100_sxm"]
    assert any("y[i] = 2 * x[i]" in line for line in lines)
    assert "chosen (program.py:12), grid 16, block 256" in lines


@pytest.mark.ptxas
def test_one_kernel_as_data_and_as_a_page(cubin, tmp_path, capsys):
    page, asked = tmp_path / "page.html", ["predict", f"{cubin}:saxpy", "--grid", "256"]
    assert main([*asked, "--block", "256", *ARGS, "--json", "-", "--html", str(page)]) == 0
    data = json.loads(capsys.readouterr().out)
    (launch,) = data["launches"]
    assert (launch["kernel"], launch["grid"], launch["block"]) == (
        "saxpy",
        [256, 1, 1],
        [256, 1, 1],
    )
    found = launch["forecasts"]["h200"]
    assert 1e-6 < found["seconds"] < 1e-5
    assert found["seconds"] == pytest.approx(found["launch"] + max(found["parts"].values()))
    shares = [line["share"] for line in found["lines"]]
    assert shares == sorted(shares, reverse=True)
    assert 0.5 < sum(shares) <= 1
    first = found["lines"][0]
    both = *first["issues"].values(), *first["waits_for"].values()
    assert sum(both) == pytest.approx(first["share"], abs=1e-5)
    text = page.read_text()
    assert "LDG.E" in text
    assert all(word not in text for word in ("http:", "https:", "<script", "<link"))


@pytest.mark.ptxas
@pytest.mark.parametrize(
    ("arguments", "status", "why"),
    [
        (("{program}:treble",), 5, "launches no kernel 'treble'; it launches twice, chosen"),
        (("{program}", "--grid", "4"), 2, "--shared are for compiled code, not"),
        (("{cubin}",), 2, "is compiled code: say --grid, --block and each --arg"),
        (("{cubin}:saxpi", "--grid", "4"), 2, "no kernel 'saxpi'; the module has saxpy"),
        (("{cubin}", "--grid", "4"), 2, "does not say how many threads a block has"),
        (("{cubin}", "--grid", "0"), 2, "'0' is no size, such as 1024, 64x64"),
        (("{cubin}", "--grid", "4", "--arg", "int3:5"), 2, "'int3' is no format of NumPy's"),
        (("{cubin}", "--grid", "4", "--arg", "int8:x"), 2, "'x' is no number of int8"),
        (("{cubin}", "--grid", "4", "--arg", "5"), 2, "'5' is no argument, such as float32"),
        (("{program}", "--device", "h200,h300"), 2, "'h300' is not known; use a100_40gb, a100"),
        (("nowhere.py",), 2, "there is no file 'nowhere.py'"),
    ],
)
def test_what_makes_no_sense_has_its_status_and_says_what_would(
    program, cubin, capsys, arguments, status, why
):
    given = [text.format(program=program, cubin=cubin) for text in arguments]
    assert main(["predict", *given]) == status
    assert why in capsys.readouterr().err


@pytest.mark.ptxas
@pytest.mark.measuring
def test_a_program_that_fails_and_a_launch_that_cannot_be_forecast(tmp_path, cubin, capsys):
    silent = tmp_path / "silent.py"
    silent.write_text("raise SystemExit(7)")
    assert main(["predict", str(silent)]) == 5
    assert "launches no kernel, and ended with status 7" in capsys.readouterr().err
    failing = tmp_path / "failing.py"
    failing.write_text(PROGRAM.partition("twice[16")[0] + "twice[1, 32](x, y)\nraise OSError\n")
    assert main(["predict", str(failing)]) == 1
    assert "The program ended with status 1." in capsys.readouterr().out
    assert main(["predict", cubin, "--grid", "4", "--block", "256", *ARGS[:4]]) == 1
    assert "takes 4 parameters" in capsys.readouterr().out
    unwritable = str(tmp_path / "no" / "page.html")
    given = ["--grid", "4", "--block", "256", *ARGS, "--html", unwritable]
    assert main(["predict", cubin, *given]) == 3


def test_without_the_compilers_it_says_how_to_get_them(program, monkeypatch, capsys):
    monkeypatch.setattr(predicting, "lacking", lambda: "there is no ptxas; pip install it")
    assert main(["predict", program]) == 4
    assert "there is no ptxas; pip install it" in capsys.readouterr().err


@cuda.jit
def kernel(x):
    x[0] = 1


@cuda.jit
def first_elements(x):
    if cuda.threadIdx.x == 0 and cuda.threadIdx.y == 0:
        x[cuda.blockIdx.y, cuda.blockIdx.x] = 1


def test_a_launch_that_shares_arrays_with_one_of_which_blocks_are_missing_says_so():
    found, x, other = predicting.Launches(), np.zeros(8), np.zeros(8)
    sampled = SimpleNamespace(report=SimpleNamespace(sampled=2))
    found.before(Call(kernel, 1, 32, (x,), 0))
    found.after(sampled)
    found.before(Call(kernel, 2, 32, (x[2:],), 0))
    found.before(Call(kernel, 3, 32, (other,), 0))
    assert [bool(one.notes) for one in found.of_kind.values()] == [False, True, False]
    assert found.sampled == 1


def test_of_a_large_launch_two_blocks_run_and_of_another_one_all():
    def sample(grid):
        return predicting.ends(Call(kernel, grid, (16, 16), (), 0))

    assert sample((32, 32)) is False
    assert sample((32, 33)) == (0, 32 * 33 - 1)
    found, x = predicting.Launches(), np.zeros((33, 32 * 256), np.float32)
    with watching(found.after, found.before, predicting.ends):
        first_elements[(32, 33), (16, 16)](x)
    assert np.count_nonzero(x) == 2
    assert found.sampled == 1


PRINTS = """
import numpy as np
from numba import cuda

@cuda.jit
def ones(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] = 1

x = np.zeros({size}, np.float32)
ones[x.size // 256, 256](x)
{more}
"""


@pytest.mark.parametrize(
    ("size", "more", "said"), [(1 << 19, "print(x.sum())", True), (1 << 19, "", False),
                               (1 << 12, "print(x.sum())", False)],
)  # fmt: skip
def test_what_a_program_prints_of_a_launch_that_did_not_run_whole_is_explained(
    tmp_path, capsys, size, more, said
):
    path = tmp_path / "program.py"
    path.write_text(PRINTS.format(size=size, more=more))
    launches, ended = predicting.of_program(str(path), [], None)
    printed = {True: "512.0\n", False: f"{size}.0\n"}[size > predicting.WHOLE] * bool(more)
    assert capsys.readouterr().err == printed
    assert any("printed" in one for one in predicting._remarks(launches, ended)) == said


@pytest.mark.ptxas
@pytest.mark.measuring
def test_lines_of_a_kernel_that_vectorize_made_have_their_text():
    triple = cuda.vectorize(["float32(float32)"], target="cuda")(lambda x: 3 * x)
    x = np.zeros(1 << 16, np.float32)
    found = predict_time(triple.kernel, 256, 256, x, x)
    texts = [text_of(line).strip() for line in found.lines]
    assert "out[i] = function(x0[i])" in texts
    assert all(texts)


def test_times_have_three_digits():
    times = 1.234e-6, 9.996e-4, 0.01, 2.5
    assert [duration(t) for t in times] == ["1.23 µs", "1000 µs", "10.0 ms", "2.50 s"]

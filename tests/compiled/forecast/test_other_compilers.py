"""Code of nvcc and Triton: read from cubins, executed, forecast; what is unsure is said."""

import ctypes
import struct
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.forecast import pages
from benchmarks.forecast.compiled import CASES, timing
from benchmarks.forecast.compiled.cubins import kept
from benchmarks.forecast.written import Written, stored
from benchmarks.samples.realistic import is_right
from gemmlab import predict_time
from gemmlab.compiled.forecast.telling import own_frame, sentence
from gemmlab.compiled.forecast.unsure import hanging_on, unsure
from gemmlab.compiled.sass import cubins
from gemmlab.compiled.sass.compiling import Frame
from gemmlab.compiled.sass.execution.machine import launch
from gemmlab.compiled.sass.listing import Listing, instructions
from gemmlab.here.compilers import assemble
from gemmlab.measure.backends import gpu
from tests.support import fake_gpu

QUICK = "stencil", "embedding"  # a struct by value; the pointers that Triton hides
MEASURED = (
    *("softmax", "histogram", "scan", "convolution"),
    *("layer_norm", "dropout", "cross_entropy", "running_sums"),
)


def code_of(name):
    module = cubins.module(kept()[name].cubin, "sm_90")
    return cubins.listing(module, module.one())


def is_done(name):
    case, code = CASES[name], code_of(name)
    made = case.launch(case.small)
    block = case.block or code.parameters.block
    shared = kept()[name].shared_bytes
    launch(code, made.grid, block, *made.arguments, shared_bytes=shared).run()
    return is_right(list(case.check(*made.arguments)))


@pytest.mark.ptxas
@pytest.mark.parametrize(
    "name",
    [
        *QUICK,
        *(pytest.param(name, marks=pytest.mark.measuring) for name in MEASURED),
    ],
)
def test_a_kernel_of_another_compiler_is_right(name):
    assert is_done(name)


@pytest.mark.parametrize("on", pages.DEVICES)
def test_what_was_predicted_is_kept_with_its_code_and_source(on):
    rows = {row["kernel"]: row for row in stored(on, "compiled_predicted").rows}
    assert set(rows) == set(CASES) == set(kept())
    assert sum(case.compiler == "nvcc" for case in CASES.values()) == len(CASES) / 2 == 10
    for name, case in CASES.items():
        assert rows[name]["cubin_sha256"] == kept()[name].sha256
        assert kept()[name].source_sha256 == case.source_sha256
    timings = stored(on, "compiled_timed")
    for row in timings.rows if timings else ():
        assert row["right"]
        assert row["cubin_sha256"] == kept()[row["kernel"]].sha256


def test_a_table_of_made_times_has_the_mean_of_each_compiler():
    """Each kernel takes twice as long as predicted; one whose code is another is refused."""
    first = stored("h100_sxm", "compiled_predicted")
    made = [row | {"right": True, "ns": [2e9 * row["seconds"]]} for row in first.rows]
    whose = CASES, lambda case: case.compiler
    text = pages.from_cubins(first, Written({}, made), *whose)
    assert text.count("| −50.0% |") == len(CASES)
    assert (
        "50.0% off on average, 50.0% in the median; 10 kernels of nvcc: 50.0%; 10 kernels of T"
        in text
    )
    wrong = [made[0] | {"cubin_sha256": "0"}, *made[1:]]
    with pytest.raises(ValueError, match="saxpy: other code was timed"):
        pages.from_cubins(first, Written({}, wrong), *whose)


@pytest.fixture
def launched(monkeypatch):
    """The launches of a made-up driver: grid, block and shared memory, and what is passed."""
    launches = []

    def launch_kernel(function, *sizes_and_stream_and_parameters):
        *sizes, _, address, _ = sizes_and_stream_and_parameters
        pointers = (ctypes.c_void_p * 4).from_address(address)
        passed = [ctypes.string_at(pointers[0], 12), ctypes.string_at(pointers[2], 8)]
        launches.append((function, tuple(sizes), passed))
        return (0,)

    for _ in fake_gpu.installed(monkeypatch):
        driver = sys.modules["cuda.bindings"].driver
        driver.cuModuleLoadData = lambda cubin: (0, cubin[:4])
        driver.cuModuleGetFunction = lambda module, name: (0, name)
        driver.cuFuncSetAttribute = lambda function, name, value: (0,)
        driver.cuLaunchKernel = launch_kernel
        yield launches


def test_a_launch_passes_addresses_and_bytes_as_the_kernel_takes_them(launched):
    """A struct by value and an array by its address; nothing is computed, which is noticed."""
    row = timing.timed(CASES["stencil"], 2)
    assert not row["right"]
    assert row["cubin_sha256"] == kept()["stencil"].sha256
    assert len(launched) == 1 + gpu.WARM_UP + len(row["ns"])
    function, sizes, (first, third) = launched[0]
    assert (function, sizes) == (b"stencil", (1, 2, 1, 32, 8, 1, 0))
    assert np.frombuffer(first, np.int32).tolist() == [32, 16, 6]
    assert int.from_bytes(third, "little") > 2**20


def test_a_cubin_of_others_is_launched_by_the_name_of_its_kernel(launched):
    code = replace(kept()["stencil"], entry="_Z7stencil4Cell")
    timing.timed(CASES["stencil"], 2, code)
    assert {function for function, *_ in launched} == {b"_Z7stencil4Cell"}


@pytest.mark.gpu
@pytest.mark.parametrize("name", CASES)
def test_right_on_this_gpu(name):
    assert timing.timed(CASES[name], CASES[name].small)["right"]


# ------------------------------------------------------------------------------------- arguments


@pytest.mark.ptxas
@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ((np.int32(3), 1.5, np.zeros(3)), "takes 4 parameters of 4, 4, 8, 8 bytes; 3 were given"),
        ((np.int64(3), 1.5, np.zeros(3), np.zeros(3)), "argument 1 has 8 bytes .*parameter 4"),
        ((2**40, 1.5, np.zeros(3), np.zeros(3)), "1099511627776 does not fit .* 4 bytes"),
        ((3, "1.5", np.zeros(3), np.zeros(3)), "'1.5' is no array and no number"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(arguments, why):
    with pytest.raises(ValueError, match=why):
        predict_time(kept()["saxpy"].cubin, 1, 256, *arguments)


@pytest.mark.ptxas
def test_code_that_is_none_says_what_makes_some(tmp_path):
    with pytest.raises(ValueError, match="neither a cubin nor PTX.*nvcc -cubin"):
        predict_time(b"MZ", 1, 256)
    with pytest.raises(FileNotFoundError, match=r"no file 'there_is_none\.cubin'"):
        predict_time("there_is_none.cubin", 1, 256)
    program = bytearray(kept()["saxpy"].cubin)
    struct.pack_into("<H", program, 18, 62)  # e_machine: x86-64
    (tmp_path / "program").write_bytes(program)
    with pytest.raises(ValueError, match="for a processor, not for a GPU"):
        predict_time(tmp_path / "program", 1, 256)
    with pytest.raises(ValueError, match="no kernel 'saxpi'; the module has saxpy"):
        predict_time(kept()["saxpy"].cubin, 1, 256, kernel="saxpi")
    ampere, _ = assemble(PTX.replace("sm_90", "sm_80"), "sm_80")
    with pytest.raises(ValueError, match="code is for sm_80, the GPU executes sm_90"):
        predict_time(ampere, 1, 32, np.zeros(1, np.uint32))
    with pytest.raises(ValueError, match="say how many threads"):
        predict_time(kept()["saxpy"].cubin, 1, None)


@pytest.mark.ptxas
@pytest.mark.measuring
def test_what_other_compilers_return_is_taken_as_it_is():
    """Triton's has a cubin, a block and shared memory; CuTe DSL's a cubin, and can be called."""
    case, built = CASES["running_sums"], kept()["running_sums"]
    grid, arguments = case.launch(200)
    shared = SimpleNamespace(shared=built.shared_bytes)
    of_triton = SimpleNamespace(asm={"cubin": built.cubin}, metadata=shared)
    callable_one = type("Compiled", (), {"__cubin__": built.cubin, "__call__": print})()
    found = predict_time(of_triton, grid, None, *arguments)
    same = predict_time(callable_one, grid, 128, *arguments, shared_bytes=built.shared_bytes)
    assert found.seconds == same.seconds
    assert found.share == same.share


# ------------------------------------------------------------------------------------ what is told

PTX = """.version 8.8
.target sm_90
.address_size 64
.visible .entry clocked(.param .u64 pa)
{
 .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .pred %p<3>;
 ld.param.u64 %rd1,[pa]; mov.u32 %r1,%clock; setp.lt.u32 %p1,%r1,5;
 @%p1 bra DONE;
 st.global.u32 [%rd1],%r1;
DONE:
 ret;
}
"""


@pytest.mark.ptxas
def test_what_is_not_known_is_named_and_does_not_stop_a_forecast():
    found = predict_time(PTX, 1, 32, np.zeros(1, np.uint32))
    assert (found.unsure.opcodes, found.unsure.decides) == ({"CS2R.32": 1}, True)
    assert 0 < found.unsure.share < 1
    assert "1 CS2R.32" in str(found.unsure)
    with pytest.raises(NotImplementedError, match="SR_CLOCKLO"):
        launch(found.listing, 1, 32, np.zeros(1, np.uint32)).run()
    assert predict_time(PTX.replace("%clock", "%laneid"), 1, 32, np.zeros(1, "u4")).unsure is None


CODE = """
------ W- R- - S04  CS2R.32 R0, SR_CLOCKLO
------ W- R- - S04  IADD3 R1, R0, 0x1, RZ
------ W- R- - S04  MOV R0, 0x5
------ W- R- - S04  STS [R9], R1
------ W- R- - S04  IADD3 R2, R0, 0x1, RZ
------ W- R- - S04  LDS R3, [R8]
------ W- R- - S04  ISETP.EQ.AND P0, PT, R3, RZ, PT
------ W- R- - S04  @P0 BRA 0x0
------ W- R- - S04  EXIT
"""


def test_what_hangs_on_a_result_is_followed_through_registers_and_shared_memory():
    code = Listing("sm_90", instructions(CODE), 16)
    assert sorted(hanging_on(code, {0})) == [1, 3, 5, 6, 7]
    assert sorted(hanging_on(code, {4})) == []


def test_an_instruction_without_a_pipe_is_unsure_if_it_is_executed():
    code = Listing("sm_90", instructions(CODE.replace("STS [R9], R1", "MOVM.16.MT88 R2, R1")), 16)
    shares = np.full(9, 0.1)
    found = unsure(code, shares, ())
    assert (found.opcodes, found.share, found.decides) == ({"MOVM.16.MT88": 1}, 0.1, False)
    shares[3] = 0
    assert unsure(code, shares, ()) is None


def test_a_line_is_of_the_file_that_somebody_wrote():
    library, own, outer = Frame("/x/site-packages/a.py", 3), Frame("k.py", 7), Frame("k.py", 20)
    assert own_frame((library, own, outer)) == own
    assert own_frame((library,)) == library
    assert own_frame((Frame("k.py", 0),)) is None
    assert own_frame(()) is None


@pytest.mark.ptxas
@pytest.mark.measuring
def test_lines_have_all_slots_in_which_somebody_waited_or_issued():
    case = CASES["saxpy"]
    made = case.launch(1 << 16)
    found = predict_time(kept()["saxpy"].cubin, made.grid, 256, *made.arguments)
    idle = found.result.empty.get("idle", 0) / found.result.slots
    assert sum(line.share for line in found.lines) == pytest.approx(1 - idle)
    first = found.lines[0]
    assert first.place.number == 4
    assert first.place.file.endswith("saxpy.cu")
    assert next(iter(first.told)) == "global memory"
    assert "saxpy.cu" in found._repr_html_()
    alone = replace(found, frames=lambda: ())
    assert alone.lines == []
    assert alone._repr_html_() == f"<p><b>{found}</b><br>{sentence(found)}</p>"

"""The loop in plain Python, where Numba is not installed, does what compiled code does."""

import json
import subprocess
import sys

from tests.project.test_architecture import ALLOWED
from tests.support.paths import ROOT

PROGRAM = """
import json
from gemmlab.compiled.sass.listing import BYTES, Control, Instruction, Listing
from gemmlab.compiled.sm.simulation import simulate
from gemmlab.compiled.sm.streams import Level, stream

LINES = [
    ("LDS.128", ("R8", "[R4]"), Control(1, write_barrier=0, read_barrier=1)),
    ("LDG.E", ("R12", "desc[UR4][R2.64]"), Control(2, write_barrier=1)),
    ("FFMA", ("R20", "R21.reuse", "R22", "R23"), Control(1)),
    ("FFMA", ("R0", "R8", "R9", "R10"), Control(4, waits=(0,))),
    ("MUFU.EX2", ("R1", "R12"), Control(1, yields=True, write_barrier=0, waits=(1,))),
    ("BAR.SYNC", ("0x0",), Control(5, waits=(0,))),
    ("STS", ("[R4]", "R0"), Control(1)),
    ("BRA", ("0x0",), Control(5)),
]
code = Listing("sm_90", tuple(Instruction(BYTES * i, "", *l) for i, l in enumerate(LINES)), 32)
asked = [4, 1, 0, 0, 0, 0, 1, 0]
one = stream([*range(8)] * 6, asked * 6, 4, Level.L2)
result = simulate(code, [[one] * 6] * 4, resident=2, window=(10, 50))
print(json.dumps([
    result.cycles, result.lost.tolist(), result.block_ends.tolist(),
    result.timeline.issued.tolist(), result.timeline.reasons.tolist(),
]))
"""


def answer(program: str) -> list:
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, encoding="utf-8"
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_it_needs_numpy_alone_and_agrees_with_compiled_code():
    assert answer(ALLOWED + PROGRAM) == answer(PROGRAM)

"""Integer arithmetic of compiled code: carries, by which words become longer numbers."""

import pytest

from gemmlab.compiled.sass.execution.machine import launch
from tests.support.listings import listing

PAIRS = (0, 5), (3, 5), (3, 24), (3, 25), (1 << 29, 0), (1 << 30, 7), (0xFFFFFFFF, 1)


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_a_shifted_word_is_subtracted_from_a_longer_number(a, b):
    """LEA with -a gives the lower word, and the carry with which the upper one is b - (a << 3)."""
    code = listing(
        f"""
        ------ W- R- - S01  MOV R2, {a:#x}
        ------ W- R- - S01  MOV R3, {b:#x}
        ------ W- R- - S01  SHF.R.U32.HI R6, RZ, 0x1d, R2
        ------ W- R- - S01  LEA R4, P0, -R2, R3, 0x3
        ------ W- R- - S01  IADD3.X R5, RZ, ~R6, RZ, P0, !PT
        ------ W- R- - S05  EXIT
        """
    )
    machine = launch(code, 1, 32)
    machine.run(1000)
    low, high = (int(machine.state.registers["R"][i][0]) for i in (4, 5))
    assert (high << 32) + low == (b - (a << 3)) % 2**64

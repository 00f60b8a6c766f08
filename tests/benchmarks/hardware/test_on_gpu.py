"""A few pieces of every check on the GPU that is there; `run.py validate` does all of them."""

import pytest

from benchmarks.hardware import machine
from benchmarks.hardware.checks import CHECKS
from benchmarks.hardware.validate import examine
from gemmlab.here.detection import detect

QUICK = [(check.name, piece) for check in CHECKS.values() for piece in check.quick]


@pytest.mark.gpu
@pytest.mark.parametrize(("name", "piece"), QUICK)
def test_a_piece_of_a_check(name, piece):
    check = CHECKS[name]
    if check.tool and machine.tool(check.tool) is None:
        pytest.skip(f"{check.tool} is not installed")
    if reason := check.pieces(detect())[piece]:
        pytest.skip(reason)
    result = examine((name, piece))
    if result.left_out:
        pytest.skip(result.left_out)
    assert result.compared > 0
    assert result.differing == 0, "\n".join(result.texts)


def test_every_check_has_quick_pieces_that_there_are():
    from gemmlab.device import device

    for check in CHECKS.values():
        pieces = check.pieces(device("h200"))
        assert set(check.quick) <= set(pieces)
        assert len(pieces) >= (
            2 if check.name == "warpgroup_products" else 3
        )  # two formats of bytes
        assert len(check.quick) <= 9
    assert {check.name for check in CHECKS.values() if not check.quick} <= {
        "loads",
        "wide_accesses",
    }

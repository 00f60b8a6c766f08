"""What a `wgmma` reads of registers: values here, and registers that `ptxas` keeps on a GPU.

Nothing fills these again before the product is complete, even where the source waits too late. So
the simulator does not follow them, and mutants that leave such a wait out are equal to what they
were made from.
"""

import re

import pytest

from benchmarks.simulator.fuzz import mutants
from gemmlab import kernels
from gemmlab.compiled.forecast.rung_listings import compiled_rung

pytestmark = [pytest.mark.ptxas, pytest.mark.measuring]

(FUSED,) = (p for p in mutants.PIPELINES if p.kernel == "tcec_fused")
STORES = re.compile(r"(ST|RED|ATOM|BRA|SYNCS|WARPSYNC|CALL|RET)")
WIDTHS = {".128": 4, ".64": 2, ".WIDE": 2}


def code(kernel):
    problem, tiling = FUSED.cases[0]
    listing = compiled_rung(kernel, problem, tiling, (9, 0))
    return [re.sub(r"^@!?\w+ ", "", str(one)) for one in listing.instructions]


def refilled(code):
    """Count the instructions that write to A's registers of a product that is not complete."""
    under_way, groups, count = [], 0, 0  # of each product: its group, None before it has one
    for text in code:
        product = re.match(r"HGMMA\S* R\d+, R(\d+), gdesc", text)
        waits = re.match(r"WARPGROUP\.DEPBAR\.LE gsb0, (\w+)", text)
        written = re.match(r"([A-Z0-9_.]+) (?:U?P\w+, )*R(\d+)", text)
        if product:
            first = int(product[1])
            under_way.append([None, set(range(first, first + 4))])
            if "gsb0" in text:
                groups += 1
                under_way = [[group or groups, registers] for group, registers in under_way]
        elif waits:
            complete = groups - int(waits[1], 16)
            under_way = [one for one in under_way if one[0] is None or one[0] > complete]
        elif written and not STORES.match(written[1]):
            first = int(written[2])
            width = max((n for part, n in WIDTHS.items() if part in written[1]), default=1)
            own = set(range(first, first + width))
            count += sum(bool(own & registers) for _, registers in under_way)
    return count


def test_registers_of_the_right_kernel_are_filled_again_behind_its_waits():
    right = code(kernels.get("tcec_fused"))
    assert sum("HGMMA" in text for text in right) == 12
    assert refilled(right) == 0
    assert refilled([text for text in right if "gsb0, 0x2" not in text]) > 10


@pytest.mark.parametrize(("which", "change"), [(0, "left out"), (1, "one group more")])
def test_a_mutant_that_waits_too_late_has_more_registers(which, change):
    made = [m for m in mutants.all_of(FUSED)
            if m.text.startswith("wgmma_wait(2, cross)") and m.change == change]  # fmt: skip
    mutant = made[1 + which]  # behind the first one a stage is given back, too: a hazard
    with mutants.kernels_with(mutant) as changed:
        slipped = code(changed.get("tcec_fused"))
    waits = [text for text in slipped if "WARPGROUP.DEPBAR" in text]
    assert ("WARPGROUP.DEPBAR.LE gsb0, 0x3" in waits) == (change == "one group more")
    assert refilled(slipped) == 0

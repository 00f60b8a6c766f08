"""Architectures: names, order, and that no other list names one that is not in this."""

from itertools import pairwise

import pytest

from benchmarks.hardware.probes.instructions import INSTRUCTIONS
from gemmlab import device
from gemmlab.device import ARCHITECTURES, Architecture, architecture, names, of_capability
from gemmlab.instructions.fragments import LAYOUTS
from gemmlab.numerics import MMAS, TENSOR_CORES, tensor_core_of


def test_the_list_is_in_order_and_by_name():
    listed = list(ARCHITECTURES.values())
    assert all(a < b for a, b in pairwise(listed))
    assert [a.name for a in listed] == list(ARCHITECTURES)
    for a in listed:
        assert architecture(a.name) is of_capability(a.capability) is a


def test_newer_is_greater_by_capability_not_by_name():
    assert architecture("sm_100") > architecture("sm_90") >= architecture("sm_90")
    assert architecture("sm_75") < architecture("sm_80")
    assert Architecture((9, 0), "Hopper", {}) == architecture("sm_90")  # rates are not compared


def test_what_is_not_listed():
    for name in ("sm_60", "Hopper", "", None, 90, ["sm_90"]):
        with pytest.raises(ValueError, match=r"arch=.* is not known; use one of sm_50, .*, sm_121"):
            architecture(name)
    assert of_capability((6, 1)) is None
    assert of_capability((99, 0)) is None


def test_every_name_elsewhere_is_in_the_list():
    used = set(TENSOR_CORES) | {x.requires for x in INSTRUCTIONS}
    used |= {name for i in MMAS.values() for name in (i.requires, i.last)}
    used |= {name for form in LAYOUTS for name in (form.first, form.last)}
    assert used - {""} <= set(ARCHITECTURES)


@pytest.mark.parametrize("name", names())
def test_every_device_has_its_architecture_and_the_rates_of_it(name):
    gpu = device(name)
    found = of_capability(gpu.compute_capability)
    for dtype, fma in found.fma_per_cycle.items():
        if dtype in gpu.flop_per_cycle_per_sm:
            assert gpu.flop_per_cycle_per_sm[dtype] == 2 * fma


@pytest.mark.parametrize(
    ("capability", "arch"),
    [
        ((6, 1), "sm_70"), ((7, 0), "sm_70"), ((7, 2), "sm_70"), ((7, 5), "sm_75"),
        ((8, 0), "sm_80"), ((8, 9), "sm_80"), ((9, 0), "sm_90"), ((10, 0), "sm_90"),
        ((99, 0), "sm_90"),
    ],
)  # fmt: skip
def test_a_gpu_is_emulated_as_the_newest_known_that_it_is_not_older_than(capability, arch):
    assert tensor_core_of(capability) is TENSOR_CORES[arch]

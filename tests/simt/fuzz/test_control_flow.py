"""Random control flow gives what plain Python gives; more of it by the program itself."""

import pytest

from benchmarks.simulator.fuzz.control_flow import differences


@pytest.mark.parametrize("seed", range(20))
def test_random_control_flow_gives_what_python_gives(seed, tmp_path):
    assert differences(seed, tmp_path) == []

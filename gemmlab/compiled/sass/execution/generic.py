"""Generic addresses point to arrays, to shared or to local memory, in one access of a warp."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from gemmlab.compiled.sass.execution.memory import SEGMENT, Memory, Watch, sum_of
from gemmlab.compiled.sass.execution.state import Mask, Operands, Step
from gemmlab.compiled.sass.listing import Address

Access = Callable[[Operands, Memory, Watch], Step]


def parted(access: Access) -> Access:
    """Return an access that is made once for each array or memory that lanes point to."""

    def made(o: Operands, memory: Memory, watch: Watch) -> Step:
        step = access(o, memory, watch)
        place = next(operand for operand in o.all if isinstance(operand, Address))
        address = sum_of(o, replace(place, wide=True))

        def run(mask: Mask) -> None:
            on = np.ones(o.state.lanes, bool) if mask is None else mask
            number = np.broadcast_to(address(), o.state.lanes) >> np.uint64(SEGMENT)
            for one in np.unique(number[on]):
                step(on & (number == one))

        return run

    return made

"""Loads that a release of a stage may overtake, read off compiled code."""

from gemmlab.compiled.sass.listing import Instruction, Listing


def under_way_at_the_release(code: Listing) -> list[Instruction]:
    """The `ldmatrix`s of a stage that nothing has waited for when a consumer first releases it.

    An arrival at an mbarrier overtakes those. Loads of a warp end in order: one that holds no
    scoreboard has ended with the next that does. Loads of the next stage, behind the wait for it,
    do not count.
    """
    opcodes = [i.opcode for i in code.instructions]
    arrival = opcodes.index("SYNCS.ARRIVE.TRANS64.A1T0")
    next_stage = max((n for n in range(arrival) if "PHASECHK" in opcodes[n]), default=0)
    if not any(o.startswith("HMMA") for o in opcodes[:next_stage]):
        next_stage = arrival  # the stage is released before the next one is waited for
    held, unnamed = {}, []
    for n, i in enumerate(code.instructions[:arrival]):
        for scoreboard in i.control.waits:
            held.pop(scoreboard, None)
        if i.name == "LDSM" and n < next_stage:
            unnamed.append(i)
            if i.control.write_barrier is not None:
                held.setdefault(i.control.write_barrier, []).extend(unnamed)
                unnamed = []
    return [i for loads in held.values() for i in loads] + unnamed

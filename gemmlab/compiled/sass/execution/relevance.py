"""Some values decide what follows: those of branches, guards and addresses, and what these need.

A forecast asks which instructions warps execute and what their accesses cost. Of most kernels that
does not depend on what they compute: sums, products and loaded data need no values then. Which
registers matter where is found backwards through the code, as compilers find what is alive. What is
done under a guard matters under that guard alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from gemmlab.compiled.sass.execution.effects import Effect, base_name, bit_of, effect
from gemmlab.compiled.sass.listing import Listing


@dataclass(frozen=True, eq=False)
class Relevance:
    """What of a listing decides what follows.

    effects, names : of each instruction
    live : the registers that matter before each instruction, as bits
    needed : whether an instruction's values matter; of an access, beside its address
    """

    effects: tuple[Effect, ...]
    names: tuple[str, ...]
    live: tuple[int, ...]
    needed: tuple[bool, ...]


@lru_cache(maxsize=32)
def relevance(listing: Listing) -> Relevance:
    """Find which values of a listing decide what its warps execute and what that costs."""
    effects = tuple(effect(i) for i in listing.instructions)
    following = _successors(listing)
    memories: frozenset[str] = frozenset()  # whose contents matter
    while True:
        live = _live(effects, following, memories)
        needed = tuple(
            _is_needed(one, _all(_joined(live, nexts)), memories)
            for one, nexts in zip(effects, following, strict=True)
        )
        asked = {m for one, of in zip(effects, needed, strict=True) if of for m in one.loads}
        if memories.issuperset(asked):
            names = tuple(base_name(i) for i in listing.instructions)
            return Relevance(effects, names, tuple(map(_all, live)), needed)
        memories = memories.union(asked)


def _is_needed(one: Effect, after: int, memories: frozenset[str]) -> bool:
    return not one.known or bool(one.writes & after) or not memories.isdisjoint(one.stores)


Alive = dict[str, int]  # by guards under which they matter, "" for any: registers as bits


def _all(live: Alive) -> int:
    """Return what matters under any guard."""
    found = 0
    for bits in live.values():
        found |= bits
    return found


def _joined(live: Sequence[Alive], nexts: list[int]) -> Alive:
    if len(nexts) == 1:
        return live[nexts[0]]
    found: Alive = {}
    for at in nexts:
        for guard, bits in live[at].items():
            found[guard] = found.get(guard, 0) | bits
    return found


def _live(
    effects: Sequence[Effect], following: list[list[int]], memories: frozenset[str]
) -> list[Alive]:
    """Find the registers that matter before each instruction; backwards, until nothing changes."""
    live: list[Alive] = [{} for _ in effects]
    before: list[list[int]] = [[] for _ in effects]
    for at, nexts in enumerate(following):
        for to in nexts:
            before[to].append(at)
    waiting, queued = list(range(len(effects))), [True] * len(effects)
    while waiting:
        at = waiting.pop()
        queued[at] = False
        found = _before(effects[at], _joined(live, following[at]), memories)
        if found != live[at]:
            live[at] = found
            for previous in before[at]:
                if not queued[previous]:
                    queued[previous] = True
                    waiting.append(previous)
    return live


def _before(one: Effect, after: Alive, memories: frozenset[str]) -> Alive:
    """Return what matters before an instruction, from what does after it."""
    found, killed = {"": 0, one.guard: 0}, one.writes if one.sure else 0
    for guard, bits in after.items():
        left = bits & ~killed if one.guard in ("", guard) else bits
        under = "" if guard and bit_of(guard) & one.writes else guard  # it was another guard before
        found[under] = found.get(under, 0) | left
    asked = one.control | (one.reads if _is_needed(one, _all(after), memories) else 0)
    if one.known:
        found[one.guard] |= asked & ~one.decides
        asked &= one.decides
    found[""] |= asked
    return {guard: bits for guard, bits in found.items() if bits}


def _successors(listing: Listing) -> list[list[int]]:
    """List where a lane may go on after each instruction."""
    index = {one.address: at for at, one in enumerate(listing.instructions)}
    after_calls = [at + 1 for at, one in enumerate(listing.instructions) if one.name == "CALL"]
    found = []
    for at, one in enumerate(listing.instructions):
        nexts = list(after_calls) if one.name == "RET" else []
        if one.name in ("BRA", "CALL", "BRX"):
            label = one.operands[-1].strip("`()")
            if label in listing.functions:
                nexts.append(index[listing.functions[label]])
            elif label.startswith("0x"):
                nexts.append(index[int(label, 16)])
            else:  # a register says where: anywhere
                nexts += range(len(listing.instructions))
        always = not one.guard and (len(one.operands) < 2 or one.name == "RET")
        leaves = one.name in ("RET", "BRA", "EXIT") and always
        if at + 1 < len(listing.instructions) and not leaves:
            nexts.append(at + 1)
        found.append(nexts)
    return found

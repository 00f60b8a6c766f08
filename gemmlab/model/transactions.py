"""A warp's addresses become memory transactions: requests, sectors, lines and wavefronts.

The one place where these words of Nsight Compute are defined; predictions and the simulator both
count with these functions. A *request* is one warp instruction with at least one active lane.
Source: NVIDIA Nsight Compute documentation, "Memory Tables" and "Metrics Decoder".
"""

import numpy as np

from gemmlab.tiling import WARP

SECTOR = 32  # bytes: the unit of traffic between L1, L2 and device memory
LINE = 128  # bytes: the unit of an L1 tag, four sectors
SECTORS = LINE // SECTOR  # of a line
TAGS = 4  # lines whose tags L1 looks up in a cycle; measured, see `l1_cycles`
BANKS = 32  # shared memory: successive 4-byte words lie in successive banks
WORD = 4  # bytes of one bank's word


def requests(active: np.ndarray) -> np.ndarray:
    """1 for each warp with an active lane, else 0; `active` is (..., 32), the result (...)."""
    return active.any(axis=-1).astype(np.int64)


def sectors(addresses: np.ndarray, active: np.ndarray, unit: int = SECTOR) -> np.ndarray:
    """Distinct `unit`-byte pieces that each warp touches; `addresses` [B] and `active` (..., 32).

    Each lane's access lies within one piece, which holds for aligned accesses of up to `unit`.

    >>> int(sectors(4 * np.arange(32), np.ones(32, bool)))    # 128 contiguous bytes
    4
    """
    pieces = np.where(active, addresses // unit, -1)
    pieces.sort(axis=-1)
    first = pieces[..., :1] >= 0
    changed = (np.diff(pieces, axis=-1) != 0) & (pieces[..., 1:] >= 0)
    return first[..., 0] + changed.sum(axis=-1)


def lines(addresses: np.ndarray, active: np.ndarray) -> np.ndarray:
    """Distinct 128-byte lines that each warp touches, as `sectors`."""
    return sectors(addresses, active, LINE)


def additions_in_turn(addresses: np.ndarray, active: np.ndarray) -> np.ndarray:
    """Passes of L2 for an atomic of each warp; `addresses` [B] and `active` are (warps, lanes).

    L2 adds to all of a sector at once, and to one address one number after another. Microbenchmark
    `benchmarks.memory.meeting`, decision 038.

    >>> at = np.array([[8, 8, 8, 12], [0, 4, 32, 36], [0, 0, 32, 32]])
    >>> additions_in_turn(at, at >= 0).tolist()
    [3, 2, 4]
    """
    at = np.sort(np.where(active, addresses, -1), axis=1)
    count, same, most = np.zeros((3, len(at)), np.int64)
    for lane in range(at.shape[1]):
        last = lane + 1 == at.shape[1]
        following = np.full(len(at), -1) if last else at[:, lane + 1]
        same += 1
        most = np.maximum(most, same)
        same[following != at[:, lane]] = 0
        ends = last | (following // SECTOR != at[:, lane] // SECTOR)
        count += np.where(ends & (at[:, lane] >= 0), most, 0)
        most[ends] = 0
    return count


def wavefronts(addresses: np.ndarray, active: np.ndarray, width: int) -> np.ndarray:
    """Wavefronts of shared memory for each warp; `width` bytes a lane, `addresses` (..., 32).

    A wavefront serves each bank one 4-byte word, to any number of lanes: there are as many as the
    busiest bank has distinct words. Accesses of 8 bytes go half a warp at a time and of 16 bytes a
    quarter. That holds for stores; for loads see `load_wavefronts`.

    >>> column = 4 * 32 * np.arange(32)        # a column of a 32-wide float32 tile: one bank
    >>> int(wavefronts(column, np.ones(32, bool), 4))
    32
    """
    return _passes(*_words(addresses, active, width)).sum(axis=-1)


def load_wavefronts(addresses: np.ndarray, active: np.ndarray, width: int) -> np.ndarray:
    """Wavefronts of a load from shared memory: wide ones may take less than `wavefronts`.

    Two neighbouring groups of lanes go together where each lane x of both has its address in common
    with lane x XOR 1, or each with lane x XOR 2. Measured with Nsight Compute on an H200: exact for
    48 patterns of 8 and 16 bytes (benchmarks/hardware/checks/wide_accesses.py). Stores do not
    merge.

    >>> one_for_all, own = np.zeros(32, int), 16 * np.arange(32)
    >>> [int(load_wavefronts(a, np.ones(32, bool), 16)) for a in (one_for_all, own)]
    [2, 4]
    """
    words, on = _words(addresses, active, width)
    apart = _passes(words, on)
    if apart.shape[-1] == 1:
        return apart.sum(axis=-1)
    merging = _merging(addresses, active, width)
    pairs = (*apart.shape[:-1], apart.shape[-1] // 2)
    united = _passes(words.reshape(*pairs, -1), on.reshape(*pairs, -1))
    return np.where(merging, united, apart.reshape(*pairs, 2).sum(axis=-1)).sum(axis=-1)


def _words(addresses: np.ndarray, active: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
    """The 4-byte words of each group of lanes that is served at once, and which are asked for."""
    groups = max(1, width // WORD)
    shape = (*addresses.shape[:-1], groups, WARP // groups)
    words, on = (addresses // WORD).reshape(shape), active.reshape(shape)
    if groups > 1:  # each lane covers `groups` neighbouring words
        words = (words[..., None] + np.arange(groups)).reshape(*shape[:-1], WARP)
        on = np.repeat(on, groups, axis=-1)
    return words, on


def _passes(words: np.ndarray, on: np.ndarray) -> np.ndarray:
    """Distinct words of the busiest bank, over the last axis."""
    # A word's key sorts by bank, then by word: a bank's distinct words are a run of new keys.
    bank, row = words % BANKS, words // BANKS
    span = int(row.max(initial=0)) + 1
    keys = np.where(on, bank * span + row, -1)
    keys.sort(axis=-1)
    new = keys >= 0
    new[..., 1:] &= np.diff(keys, axis=-1) != 0
    found = np.flatnonzero(new)
    warp, bank = found // keys.shape[-1], keys.ravel()[found] // span
    per_bank = np.bincount(warp * BANKS + bank, minlength=keys.size // keys.shape[-1] * BANKS)
    return per_bank.reshape(*keys.shape[:-1], BANKS).max(axis=-1)


def served_together(
    addresses: np.ndarray, active: np.ndarray, width: int, merges: bool
) -> list[np.ndarray]:
    """Return the lanes of one warp's access, in the groups that shared memory serves one by one.

    >>> [group.size for group in served_together(np.zeros(32, int), np.ones(32, bool), 16, True)]
    [16, 16]
    """
    groups = max(1, width // WORD)
    apart = np.split(np.arange(WARP), groups)
    if groups == 1 or not merges:
        return apart
    found: list[np.ndarray] = []
    for pair, together in enumerate(_merging(addresses, active, width)):
        both = apart[2 * pair : 2 * pair + 2]
        found += [np.concatenate(both)] if together else both
    return found


def _merging(addresses: np.ndarray, active: np.ndarray, width: int) -> np.ndarray:
    """Which pairs of neighbouring groups of lanes go together in a wide load, (..., pairs)."""
    lanes = 2 * WARP * WORD // width  # of a pair
    shape = (*addresses.shape[:-1], WARP // lanes, lanes)
    at, on = addresses.reshape(shape), active.reshape(shape)
    lane = np.arange(lanes)
    return np.logical_or.reduce([
        (~on | ~on[..., lane ^ x] | (at == at[..., lane ^ x])).all(axis=-1) for x in (1, 2)
    ])  # fmt: skip


def least_wavefronts(addresses: np.ndarray, active: np.ndarray, width: int) -> np.ndarray:
    """Wavefronts of each warp without bank conflicts: one for each group that has a lane.

    >>> lanes, first_row = 16 * np.arange(32), np.arange(32) < 8
    >>> int(least_wavefronts(lanes, first_row, 16))
    1
    """
    groups = max(1, width // WORD)
    return active.reshape(*active.shape[:-1], groups, -1).any(axis=-1).sum(axis=-1)


def least_load_wavefronts(addresses: np.ndarray, active: np.ndarray, width: int) -> np.ndarray:
    """Return `least_wavefronts` of a load, where groups that go together count once.

    >>> int(least_load_wavefronts(np.zeros(32, int), np.ones(32, bool), 16))
    2
    """
    groups = max(1, width // WORD)
    some = active.reshape(*active.shape[:-1], groups, -1).any(axis=-1)
    if groups == 1:
        return some.sum(axis=-1)
    pairs = some.reshape(*some.shape[:-1], groups // 2, 2)
    merging = _merging(addresses, active, width)
    return np.where(merging, pairs.any(axis=-1), pairs.sum(axis=-1)).sum(axis=-1)


# By whether groups of lanes may go together: what a shared access takes, and what it would take
# without bank conflicts.
SHARED_PASSES = {
    True: (load_wavefronts, least_load_wavefronts),
    False: (wavefronts, least_wavefronts),
}


def l1_wavefronts(addresses: np.ndarray, active: np.ndarray, width: int) -> np.ndarray:
    """Wavefronts of L1's data stage for each warp's global load, its lines being in L1.

    The same rule as shared memory's, `wavefronts`: L1 is the same 32 banks, and a wavefront may
    take words of many lines. Measured with Nsight Compute on an H200: exact for 349 address
    patterns (benchmarks/hardware/checks/loads.py) of strides from 0 to 16388 B, widths 1, 2, 4 and
    8 B, random.

    >>> every_32nd, every_33rd = 128 * np.arange(32), 132 * np.arange(32)
    >>> [int(l1_wavefronts(a, np.ones(32, bool), 4)) for a in (every_32nd, every_33rd)]
    [32, 1]
    """
    return wavefronts(addresses, active, width)


def l1_cycles(addresses: np.ndarray, active: np.ndarray, width: int) -> np.ndarray:
    """Least cycles that each warp's global access keeps L1 busy [cycle].

    max(l1_wavefronts, lines / 4): before the data comes the tag of each line, four tags a cycle.
    Measured likewise: no pattern took less, 32 lines took 8 to 14 cycles. Which lines delay each
    other is not modelled, so that this is a lower bound for many lines.

    >>> int(l1_cycles(132 * np.arange(32), np.ones(32, bool), 4))    # 32 lines, all banks
    8
    """
    tags = -(-lines(addresses, active) // TAGS)
    return np.maximum(l1_wavefronts(addresses, active, width), tags)

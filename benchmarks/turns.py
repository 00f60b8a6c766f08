"""Processes that compile side by side take turns on the GPU: one at a time computes there.

with multiprocessing.get_context("spawn") … Pool(count, turns.share, (Lock(),))
with turns.mine():
    …                       a process computes, and no other one
"""

from contextlib import AbstractContextManager, nullcontext

_turn: AbstractContextManager = nullcontext()


def share(turn: AbstractContextManager) -> None:
    """Let this process use the GPU while it holds `turn`, which all processes share."""
    global _turn
    _turn = turn


def mine() -> AbstractContextManager:
    """Return what this process holds while it uses the GPU; alone it need not wait."""
    return _turn

"""Compiled code is executed here: a listing in NumPy, for all lanes of some blocks at once.

state                     registers and predicates of lanes, and how operands are read
integers, floats, lanes, memory, asynchronous
                          what instructions do, a function for each opcode
directions                branches, calls, ends, barriers: which lanes are at which instruction
machine, visits           executes, and keeps what each warp executed and what its accesses cost
effects, relevance        which values decide what follows; the others need not be computed
accounts                  what accesses cost that are not done
loops, notes, stale       turns of loops that repeat are left out
"""

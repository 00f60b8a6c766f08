"""Compiled code is executed here: a listing in NumPy, for all lanes of some blocks at once.

state                     registers and predicates of lanes, and how operands are read
integers, floats, lanes, memory, asynchronous
                          what instructions do, a function for each opcode
directions                branches, calls, ends, barriers: which lanes are at which instruction
machine                   executes, and keeps what each warp executed and what its accesses cost
"""

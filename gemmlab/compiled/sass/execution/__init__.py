"""What compiled code does: a listing is executed in NumPy, for all lanes of some blocks at once.

state        registers and predicates of lanes, and how operands are read
integers, bits, floats, doubles, conversions, logic, lanes, accesses
             what instructions do, a function for each opcode
meanings     which function that is
groups       lanes that are at the same instruction
directions   branches, calls, ends, barriers
memory       arrays at addresses, shared and local memory
special      special registers
machine      executes; keeps what each warp executed and what its accesses cost
launch       a machine for a kernel's arguments
"""

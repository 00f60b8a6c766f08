"""A report of a launch: counters by line, hazards, notes, and the trace of chosen accesses."""

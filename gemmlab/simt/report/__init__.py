"""What a launch did: counters by line, hazards, notes, and the trace of chosen accesses."""

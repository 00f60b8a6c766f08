"""One streaming multiprocessor: the cycles of compiled code, and what each slot waits for."""

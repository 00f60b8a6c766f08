"""One streaming multiprocessor: the cycles that compiled code takes, and what each slot waits for."""

"""The clock of a GPU's SMs, read inside of kernels, beside that of the simulated SM."""

"""Random kernels on which the simulator and a GPU must agree."""

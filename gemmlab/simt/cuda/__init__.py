"""`cuda` where there is no Numba: kernels that are launched on the simulator, and their arrays."""

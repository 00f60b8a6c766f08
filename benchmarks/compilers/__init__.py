"""Every rung by both compilers, Numba-CUDA and numba-cuda-mlir.

`compiling` keeps what each makes of a rung, `timing` runs both on a GPU, `table` writes the table.
"""

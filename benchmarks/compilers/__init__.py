"""Every rung by both compilers, Numba-CUDA and numba-cuda-mlir.

`compiling` keeps what each makes of a rung, `timing` runs both on a GPU, `differences` asks what
else they make otherwise, and `table` writes the page's tables.
"""

from gemmlab import kernels

RUNGS = (*kernels.GPU, *kernels.HOPPER_CLUSTERS)

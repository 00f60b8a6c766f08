"""The reference rung: cuBLAS, called through CuPy; in FP32 without Tensor Cores."""

from collections.abc import Callable, Mapping

import numpy as np

from gemmlab import Tiling
from gemmlab.formats import EIGHT_BITS, FORMATS
from gemmlab.kernels.kernel import Kernel
from gemmlab.problem import LAYOUTS, Gemm

# Formats and the names of their CUDA data types; bytes are for cuBLASLt, another library.
TYPES = tuple((f.name, f.library) for f in FORMATS.values() if f.name not in EIGHT_BITS)
# The format of A and B that makes cuBLAS compute in another way than in float32.
COMPUTE = (("float64", "CUBLAS_COMPUTE_64F"), ("tf32", "CUBLAS_COMPUTE_32F_FAST_TF32"))


def build(
    tiling: Tiling | None, layout: str = "nn", dtype: str = "float32", out_dtype: str = "float32"
) -> Callable:
    """Return a function of (alpha, A, B, beta, C) with arrays on the GPU; ImportError without CuPy.

    layout : which operands are stored transposed, see `Gemm.layout`
    dtype, out_dtype : the formats of A and B, and of C
    """
    import cupy
    from cupy.cuda import runtime
    from cupy_backends.cuda.libs import cublas as lib

    of_operands, of_c = (getattr(runtime, dict(TYPES)[name]) for name in (dtype, out_dtype))
    compute = getattr(lib, dict(COMPUTE).get(dtype, "CUBLAS_COMPUTE_32F"))
    scalar = np.float64 if dtype == "float64" else np.float32

    def cublas(alpha, A, B, beta, C):
        # cuBLAS stores columns first: its Cᵀ = BᵀAᵀ is our C = AB, row by row.
        handle = cupy.cuda.device.get_cublas_handle()
        (m, n), k = C.shape, A.shape[layout[0] == "n"]
        scalars = np.array([alpha, beta], scalar)
        pointers = scalars.ctypes.data, scalars.ctypes.data + scalars.itemsize
        a, b, c = (x.__cuda_array_interface__["data"][0] for x in (A, B, C))
        of_a, of_b = (lib.CUBLAS_OP_T if way == "t" else lib.CUBLAS_OP_N for way in layout)
        lda, ldb = A.shape[1], B.shape[1]  # how far apart rows begin
        lib.gemmEx(
            handle, of_b, of_a, n, m, k,
            pointers[0], b, of_operands, ldb, a, of_operands, lda,
            pointers[1], c, of_c, n,
            compute, lib.CUBLAS_GEMM_DEFAULT,
        )  # fmt: skip

    return cublas


def variant(problem: Gemm, capability: tuple[int, int] | None) -> Mapping[str, str]:
    """Keyword arguments of `build`: the layout of the operands, and the formats."""
    return {"layout": problem.layout, "dtype": problem.dtype, "out_dtype": problem.out_dtype}


HALVES = [form.name for form in FORMATS.values() if form.bytes == 2]

cublas = Kernel(
    name="cublas",
    idea="NVIDIA's library, the yardstick",
    default=None,
    build=build,
    variant=variant,
    arithmetic=(
        *(Gemm(1, 1, 1, dtype=name).arithmetic for name, _ in TYPES[1:]),
        *(Gemm(1, 1, 1, dtype=x, out_dtype="float32").arithmetic for x in HALVES),
        Gemm(1, 1, 1, dtype="float64").arithmetic,
    ),
    layouts=LAYOUTS,
    library=True,
)

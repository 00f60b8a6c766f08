"""What release 0.6.0 of numba-cuda-mlir gets wrong, for kernels that it is to compile.

Tests say when a release needs that no more.
"""

from collections.abc import Callable
from types import ModuleType
from typing import Any

from numba_cuda_mlir import mlir_optimization
from numba_cuda_mlir.lowering import cuda, numpy

from gemmlab.instructions.numba_cuda_mlir import arrays


def mends() -> tuple[tuple[ModuleType, str, Callable], ...]:
    """Return functions to put in the place of its own: module, name, function.

    A row of an array of known strides, `a[0]` of `cuda.local.array((2, 4), …)`, gets a type that
    MLIR refuses: here the array forgets its strides first. A shared array of a device function is
    left behind when that is copied into the kernel: here it is a global of the kind that is copied.
    Variables of a device function that is called in a loop stay in local memory, because they are
    made where it is inlined: here all are made where the kernel begins, so that LLVM finds them.
    """
    own, patterns = numpy._rank_reducing_subview, mlir_optimization.run_pre_codegen_patterns

    def at_the_beginning(module: Any) -> None:
        arrays.hoist(module)
        patterns(module)

    return (
        (mlir_optimization, "run_pre_codegen_patterns", at_the_beginning),
        (numpy, "_rank_reducing_subview", lambda array, *rest: own(arrays.strided(array), *rest)),
        (cuda, "cuda_static_shared_memory", arrays.shared_array),
    )

"""Number formats, rounding, the Tensor Core to the bit, and float32 products made from it.

>>> from gemmlab import numerics
>>> float(numerics.round_to(0.1, "bfloat16"))
0.10009765625
"""

from gemmlab.formats import (
    FORMATS,
    ROUNDINGS,
    Fields,
    Format,
    decode,
    encode,
    fields,
    number_format,
    round_to,
    ulp,
)
from gemmlab.numerics.errors import (
    ACCUMULATIONS,
    Accumulation,
    accumulation,
    backward_error,
    fma_chain_bound,
    forward_error,
    max_relative_error,
    running_sums,
    tensor_core_bound,
)
from gemmlab.numerics.fma import fma, fma_chain
from gemmlab.numerics.tcec import POLICIES, Policy, Split, emulated_matmul, split, split_range
from gemmlab.numerics.tensor_cores import (
    MMAS,
    TENSOR_CORES,
    Mma,
    TensorCore,
    fused_dot_add,
    mma,
    mma_named,
    tensor_core,
    tensor_core_of,
)

__all__ = [
    "ACCUMULATIONS",
    "FORMATS",
    "MMAS",
    "POLICIES",
    "ROUNDINGS",
    "TENSOR_CORES",
    "Accumulation",
    "Fields",
    "Format",
    "Mma",
    "Policy",
    "Split",
    "TensorCore",
    "accumulation",
    "backward_error",
    "decode",
    "emulated_matmul",
    "encode",
    "fields",
    "fma",
    "fma_chain",
    "fma_chain_bound",
    "forward_error",
    "fused_dot_add",
    "max_relative_error",
    "mma",
    "mma_named",
    "number_format",
    "round_to",
    "running_sums",
    "split",
    "split_range",
    "tensor_core",
    "tensor_core_bound",
    "tensor_core_of",
    "ulp",
]

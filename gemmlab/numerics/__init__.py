"""Number formats, rounding, the Tensor Core to the bit, and float32 products made from it.

>>> from gemmlab import numerics
>>> float(numerics.round_to(0.1, "bfloat16"))
0.10009765625
"""

from gemmlab.formats import (
    BY_PTX,
    FORMATS,
    ROUNDINGS,
    Fields,
    Format,
    decode,
    encode,
    fields,
    from_memory,
    number_format,
    round_to,
    ulp,
)
from gemmlab.numerics import errors, tcec, tensor_cores
from gemmlab.numerics.errors import *
from gemmlab.numerics.fma import fma, fma_chain
from gemmlab.numerics.tcec import *
from gemmlab.numerics.tensor_cores import *

# Each module lists in its own __all__ what is for others; of `formats` it is a part.
__all__ = [
    "BY_PTX", "FORMATS", "ROUNDINGS", "Fields", "Format", "decode", "encode", "fields", "fma",
    "fma_chain", "from_memory", "number_format", "round_to", "ulp",
]  # fmt: skip
__all__ += [*errors.__all__, *tcec.__all__, *tensor_cores.__all__]

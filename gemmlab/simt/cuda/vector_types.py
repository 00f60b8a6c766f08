"""`numba.cuda.vector_types`: each of CUDA's vector types as a program looks at it."""

from typing import Any, NamedTuple

from gemmlab.simt.numbers import vectors
from gemmlab.simt.numbers.types import TYPES
from gemmlab.simt.syntax.names import Intrinsic, stand_in_names


class VectorType(NamedTuple):
    """A vector type: its name, the type of its numbers, their names, and what makes one."""

    name: str
    base_type: Any
    attr_names: tuple[str, ...]
    user_facing_object: Intrinsic

    @property
    def num_elements(self) -> int:
        return len(self.attr_names)


_NAMES = stand_in_names()
vector_types = {
    name: VectorType(name, TYPES[of.dtype.name], tuple("xyzw"[: of.count]), _NAMES[name])
    for name, of in vectors.BY_NAME.items()
    if name == of.name
}

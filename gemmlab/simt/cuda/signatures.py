"""Signatures of kernels, such as ``"void(float32[:], int32)"``, and arguments that fit them."""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gemmlab.simt.numbers.types import TYPES
from gemmlab.simt.numbers.values import number

_ARRAY = re.compile(r"(?:unaligned )?[Aa]rray\((.+), (\d+)d?,.*\)")


class Argument(NamedTuple):
    """The type of an argument: of a number where `ndim` is 0, else of an array's elements.

    dtype : None for what is no number: a tuple; a record, in a signature, for any record
    """

    dtype: np.dtype | None
    ndim: int

    def __str__(self) -> str:
        name = "object" if self.dtype is None else self.dtype.name
        return f"{name}[{', '.join(':' * self.ndim)}]" if self.ndim else name


def declared(given: Any) -> list[tuple[Argument, ...]]:
    """Give the signatures of `given`: text, types of Numba or of the stand-in, or a list of these.

    Raises TypeError for anything else.

    >>> declared("void(float32[:, :], int32)")
    [(Argument(dtype=dtype('float32'), ndim=2), Argument(dtype=dtype('int32'), ndim=0))]
    """
    if isinstance(given, list):
        return [signature for one in given for signature in declared(one)]
    given = evaluated(given)
    types = given if isinstance(given, tuple) else getattr(given, "args", None)
    if not isinstance(types, tuple):
        raise TypeError(f"{given!r} is no signature; write void(float32[:], int32)")
    return [tuple(map(_argument, types))]


def evaluated(given: Any) -> Any:
    """Return a signature that may be text; TypeError for text that is none."""
    if not isinstance(given, str):
        return given
    try:
        return eval(given, {"__builtins__": {}}, dict(TYPES))
    except Exception as error:
        raise TypeError(
            f"{given!r} is no signature ({error}); write it as 'void(float32[:], int32)'"
        ) from None


def _argument(declaration: Any) -> Argument:
    """One type of a signature; Numba's own are read by their text, which needs no Numba."""
    text = str(declaration)
    array = _ARRAY.fullmatch(text)
    name, ndim = (array[1], int(array[2])) if array else (text, 0)
    name = "boolean" if name == "bool" else name
    return Argument(TYPES[name].dtype if name in TYPES else None, ndim)


def type_of(value: Any) -> Argument:
    """Return the type of an argument as it is given."""
    if isinstance(value, np.ndarray):
        return Argument(value.dtype, value.ndim)
    try:
        return Argument(number(value).dtype, 0)
    except TypeError:
        return Argument(None, 0)


def converted(
    name: str, signatures: Sequence[tuple[Argument, ...]], args: tuple
) -> tuple[Any, ...]:
    """Give `args` as a kernel with these signatures takes them: numbers become those of its types.

    Raises TypeError where no signature has arrays like these, as Numba does, which compiles for
    no other types once some are declared.
    """
    given = tuple(map(type_of, args))
    for signature in sorted(signatures, key=lambda s: s != given):
        if len(signature) == len(args) and all(map(_takes, signature, given)):
            return tuple(map(_convert, signature, args))
    for signature in signatures[: len(signatures) == 1]:  # which Numba does not compare then
        if len(signature) == len(args) and all(map(_takes_bits, signature, given)):
            return tuple(map(_convert, signature, args))
    known = " or ".join(f"({', '.join(map(str, s))})" for s in signatures)
    raise TypeError(
        f"No matching definition: {name} takes {known}, as its signature says, not "
        f"({', '.join(map(str, given))}); convert the arrays, or leave the signature out"
    )


def _takes(declaration: Argument, given: Argument) -> bool:
    of_numbers = given.dtype is not None and given.dtype.names is None
    if declaration.dtype is None:  # which NumPy takes for float64
        return not of_numbers and declaration.ndim == given.ndim
    return declaration == given or (of_numbers and declaration.ndim == given.ndim == 0)


def _takes_bits(declaration: Argument, given: Argument) -> bool:
    """Say whether an array's integers can be taken for others of the same size, or _takes it."""
    if _takes(declaration, given) or declaration.dtype is None or given.dtype is None:
        return _takes(declaration, given)
    whole = declaration.dtype.kind in "iu" and given.dtype.kind in "iu"
    same_size = declaration.dtype.itemsize == given.dtype.itemsize
    return whole and same_size and declaration.ndim == given.ndim > 0


def _convert(declaration: Argument, value: Any) -> Any:
    if declaration.ndim and declaration.dtype is not None and declaration.dtype != value.dtype:
        return value.view(declaration.dtype)
    if declaration.ndim or declaration.dtype is None:
        return value
    return np.asarray(value).astype(declaration.dtype)[()]

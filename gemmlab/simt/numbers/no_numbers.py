"""What a kernel can name and not compute with, and which lanes a condition chooses."""

from __future__ import annotations

from typing import Any

import numpy as np

NUMBER = (np.ndarray, np.generic)  # what a kernel computes with: of each lane, or of all


class NoNumber:
    """A value whose every use as a number is an error that tells what to write instead."""

    def error(self) -> Exception:
        """What is wrong, and what to write instead."""
        raise NotImplementedError

    def refuse(self, *args: object, **options: object) -> Any:
        """Raise the error."""
        raise self.error()

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = refuse
    __rtruediv__ = __lt__ = __le__ = __gt__ = __ge__ = __neg__ = __bool__ = refuse
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __eq__ = __ne__ = refuse  # type: ignore
    __int__ = __index__ = __float__ = __array__ = __array_ufunc__ = refuse


class Unassigned(NoNumber):
    """The value of a local variable before its first assignment."""

    def __init__(self, name: str) -> None:
        self.name = name

    def error(self) -> Exception:
        return NameError(
            f"local variable {self.name!r} is read before it is assigned; assign it above, in "
            "all branches"
        )


class Partly(NoNumber):
    """What a device function returns that has ended without a value in the lanes of a mask.

    function : its name; value : of the other lanes, None if there are none; missing : the mask
    """

    def __init__(self, function: str, value: Any, missing: Any) -> None:
        self.function, self.value, self.missing = function, value, missing

    def error(self) -> Exception:
        return TypeError(f"{self.function} returns a value in some threads and none in others")


class Triple(NoNumber):
    """`cuda.threadIdx` and its like: three numbers, of which a kernel uses one at a time."""

    def __init__(self, name: str, x: Any, y: Any, z: Any) -> None:
        self.name, self.x, self.y, self.z = name, x, y, z

    def __repr__(self) -> str:
        return f"cuda.{self.name}"

    def error(self) -> Exception:
        return TypeError(f"cuda.{self.name} is three numbers; write cuda.{self.name}.x, .y or .z")


def truth(test: Any) -> Any:
    """The lanes where a condition holds: a number that is not 0, a tuple that is not empty.

    Raises TypeError for what has no truth value, such as an array.
    """
    if isinstance(test, NUMBER):
        return test if test.dtype.kind == "b" else np.not_equal(test, 0)
    if test is None or isinstance(test, (bool, tuple)):
        return bool(test)  # the same for every launch, as far as Numba knows
    if isinstance(test, NoNumber):
        test.refuse()
    raise TypeError(
        f"{shown(test)} is no condition; compare one of its elements, or its size, as x.size > 0"
    )


def several(count: int, what: str) -> str:
    """A number of things, in words.

    >>> several(1, "index"), several(2, "name")
    ('1 index', '2 names')
    """
    return f"{count} {what}" + "s" * (count != 1)


def shown(value: Any) -> str:
    """A value as an error quotes it: one number, or what there are several of."""
    if isinstance(value, tuple):
        types = [str(getattr(v, "dtype", type(v).__name__)) for v in value]
        same = len(set(types)) == 1
        return (
            f"a tuple of {len(types)} {types[0]}"
            if same and types
            else f"a tuple of {', '.join(types)}"
        )
    if isinstance(value, np.ndarray) and value.ndim:
        return f"{_article(value.dtype.name)} of each thread"
    if isinstance(value, np.generic):
        return f"{value} ({value.dtype})"
    if hasattr(value, "space"):  # an array of a kernel
        return f"the array {value.name}"
    if isinstance(value, NoNumber):
        return repr(value)
    if callable(value):
        return f"the function {getattr(value, '__name__', value)!r}"
    plain = value is None or isinstance(value, (bool, int, float, complex, str))
    return repr(value) if plain else _article(type(value).__name__)


def _article(name: str) -> str:
    return f"an {name}" if name[0] in "aeioAEIO" else f"a {name}"

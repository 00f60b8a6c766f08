"""Alignment: on which multiples rows of a matrix begin, and how wide a thread may load from them.

Sources: NVIDIA Matrix Multiplication Background User's Guide, "Tensor Core Requirements"; CUDA C++
Programming Guide, "Device Memory Accesses" (a wide access needs an address that its width divides);
PTX ISA, `cp.async` (4, 8 or 16 bytes).
"""

from typing import Any, NamedTuple

from gemmlab.device import Device, architecture
from gemmlab.formats import number_format
from gemmlab.problem import Product

WIDEST = 16  # bytes of the widest access of a thread
LINE_ON_A100 = 128  # bytes that the guide recommends there
A100 = architecture("sm_80").capability
ASYNC_COPIES = (4, 8, 16)  # bytes that one `cp.async` may copy


class Multiples(NamedTuple):
    """The multiples that m, n and k should be of, in elements: a row of the guide's table 1.

    required : to use Tensor Cores at all, before cuBLAS 11.0; None where there were none for this
        format then
    efficient : for full speed since; on_a100 : the same on an A100
    """

    required: int | None
    efficient: int
    on_a100: int


# Bytes of an element of the table's formats, and which of them cuBLAS 10 had Tensor Cores for.
TABLE = {"int8": 1, "float16": 2, "tf32": 4, "float64": 8}
BEFORE = ("int8", "float16")


def multiples(name: str) -> Multiples:
    """Return the row of table 1 for "int8", "float16", "tf32" or "float64": 16 B, on an A100 128 B.

    Raises ValueError for another name.

    >>> multiples("float16")
    Multiples(required=8, efficient=8, on_a100=64)
    """
    if name not in TABLE:
        raise ValueError(f"{name!r} is not in the table; use one of {', '.join(TABLE)}")
    size = TABLE[name]
    efficient = WIDEST // size
    return Multiples(efficient if name in BEFORE else None, efficient, LINE_ON_A100 // size)


def recommended_bytes(device: Device) -> int:
    """Rows should be a multiple of so much on `device` [B]: 128 on an A100, else 16.

    The guide says the former of the A100 alone.
    """
    return LINE_ON_A100 if device.compute_capability == A100 else WIDEST


def alignment(elements: Any, dtype: str) -> Any:
    """Return the largest power of two, up to 128, that divides rows of so many elements [B].

    >>> [alignment(k, "float16") for k in (4096, 4097, 4098, 4100, 4104)]
    [128, 2, 4, 8, 16]
    """
    size = elements * number_format(dtype).bytes | LINE_ON_A100  # 128 is the most that is asked for
    return size & -size


def row_alignment(problem: Product) -> tuple[Any, Any, Any]:
    """Return the alignments of the rows of A, B and C as they are stored [B].

    It is the length of a row that counts: of a row-major A that is k, of B and C it is n.
    """
    return tuple(
        alignment(shape[1], form)
        for shape, form in zip(problem.shapes, problem.formats, strict=True)
    )


def vector_bytes(elements: int, dtype: str) -> int:
    """Return the widest access that every row of so many elements allows [B], at most 16.

    >>> [vector_bytes(k, "float16") for k in (4096, 4097, 4098, 4100)]
    [16, 2, 4, 8]
    """
    return min(WIDEST, alignment(elements, dtype))


def loads_per_16_bytes(elements: int, dtype: str) -> int:
    """Accesses that move what one 16-byte access does where rows are aligned: 1, 2, 4 or 8.

    >>> [loads_per_16_bytes(k, "float16") for k in range(8, 17)]
    [1, 8, 4, 8, 2, 8, 4, 8, 1]
    """
    return WIDEST // vector_bytes(elements, dtype)


def copies_asynchronously(elements: int, dtype: str) -> bool:
    """Say whether `cp.async` can copy such rows: an odd number of 2-byte elements leaves 2 B.

    >>> copies_asynchronously(4098, "float16"), copies_asynchronously(4097, "float16")
    (True, False)
    """
    return vector_bytes(elements, dtype) in ASYNC_COPIES

"""Arrays become launches: a kernel is chosen, its launches are planned once and queued."""

from collections.abc import Iterable
from functools import lru_cache, partial
from typing import Any

import numpy as np

from gemmlab.here.detection import detect
from gemmlab.here.driver import gpu_status, numba_cuda
from gemmlab.multiplication import arrays, plans, products
from gemmlab.multiplication.arrays import SECTOR, Stack
from gemmlab.multiplication.choosing import Choice, fastest, fitting
from gemmlab.multiplication.machines import Planning
from gemmlab.multiplication.plans import Bound, Plan

# So many operations take a processor some ten milliseconds, as long as it takes to bring operands
# of the host to a GPU and C back.
FEW_ON_HOST = 2 * 1536**3
KINDS = 256  # of operands, whose plans are kept


def choose(a: Any, b: Any, budget: int | None) -> Choice:
    """Choose what multiplies two arrays, and in which panels."""
    return _chosen(*arrays.check(a, b), a, b, budget)


# Kinds of operands that a library multiplies: to know them again takes two microseconds, to check
# operands ten.
_handed_over: dict[tuple, arrays.Place] = {}


def _kind(x: Any) -> tuple:
    """What decides whether a library multiplies an array; CuPy's devices have no hash."""
    device = getattr(x, "device", None)
    return type(x), x.dtype, x.shape, getattr(device, "id", device)


def multiply(a: Any, b: Any, budget: int | None) -> Any:
    """Return A·B, in an array of the same library on the same device."""
    try:
        kinds = _kind(a), _kind(b), budget
        place = _handed_over.get(kinds)
    except (AttributeError, TypeError):  # no arrays, as `check` tells
        place = None
    if place is not None and arrays.multiplies(place):
        return arrays.by_library(place, a, b)
    place, sizes = arrays.check(a, b)
    if place.device is None:
        return _from_host(place, sizes, a, b, budget)
    if _chosen(place, sizes, a, b, budget).kernel == "library":
        if len(_handed_over) >= KINDS:
            _handed_over.clear()
        _handed_over[kinds] = place
        return arrays.by_library(place, a, b)
    with plans.Current(place.device):
        c, bound, _ = ready(place, a, b, budget)
        plans.go(bound.calls)
    return c


def _chosen(
    place: arrays.Place, sizes: tuple[int, int, int, int], a: Any, b: Any, budget: int | None
) -> Choice:
    if arrays.multiplies(place):  # however operands are stored
        choice = _choice(place.device, sizes, "nn", budget, place.library)
        if choice.kernel == "library":
            return choice
    return _choice(place.device, sizes, _layout(map(arrays.is_transposed, (a, b))), budget)


def ready(place: arrays.Place, a: Any, b: Any, budget: int | None) -> tuple[Any, Bound, Any]:
    """C, what is to be queued for it, and a workspace to keep until it is, on the current GPU."""
    c = arrays.empty(place, (*a.shape[:-1], b.shape[-1]), "float32")
    operands = arrays.seen(a), arrays.seen(b), arrays.seen(c)
    plan = planned(place.device, budget, tuple(x.kind for x in operands))
    # Back to its library at the end, which gives it to what the stream does afterwards.
    workspace = arrays.empty(place, (plan.size,), "uint8") if plan.size else None
    starts = [x.address - x.address % SECTOR for x in operands]
    beside = arrays.address_of(workspace) if plan.size else 0
    bound = plan.bound(arrays.stream_of(place), (*starts, beside))
    return c, bound, (operands, workspace)


@lru_cache(maxsize=KINDS)
def planned(device: int, budget: int | None, kinds: tuple[arrays.Kind, ...]) -> Plan:
    """Return the plan for A, B and C of these kinds, on the GPU that is the current one."""
    a, b, c = (Stack.of(number, *kind) for number, kind in enumerate(kinds))
    layout = _layout(stack.is_transposed for stack in (a, b))
    choice, planning = _choice(device, (*c.shape, a.shape[2]), layout, budget), Planning()
    products.multiply(planning, choice, a, b, c)
    return planning.plan(choice)


def _from_host(
    place: arrays.Place, sizes: tuple[int, int, int, int], a: Any, b: Any, budget: int | None
) -> Any:
    """Return the product of arrays of the host: on the GPU that is there, or by NumPy."""
    choice = choose(a, b, budget)
    a, b = arrays.on_host(a), arrays.on_host(b)
    if choice.kernel == "numpy":
        return arrays.as_kind(np.matmul(a, b), place)
    cuda = numba_cuda()
    there = (cuda.to_device(np.ascontiguousarray(x)) for x in (a, b))
    return arrays.as_kind(multiply(*there, budget).copy_to_host(), place)


def _layout(transposed: Iterable[bool]) -> str:
    return "".join("nt"[one] for one in transposed)


@lru_cache(maxsize=KINDS)
def _choice(
    device: int | None, sizes: tuple[int, int, int, int], layout: str, budget: int | None,
    library: str | None = None,
) -> Choice:  # fmt: skip
    """Return the kernel, its tiling and its panels.

    device : None for the host; library : that may multiply in the kernel's place
    """
    (batch, m, n, k), tiling = sizes, None
    if not gpu_status().works:
        kernel, why = "numpy", "no GPU is used: NumPy multiplies in FP32, on the processor"
    elif device is None and 2 * batch * m * n * k < FEW_ON_HOST:
        kernel, why = "numpy", "the operands are small and on the host: NumPy multiplies there"
    else:
        kernel, tiling, why = fastest(detect(), sizes, layout, library)
    bytes_of = partial(products.workspace_bytes, kernel, layout, k)
    panels = fitting((batch, m, n), bytes_of, budget)
    return Choice(kernel, why, tiling, batch, m, n, k, layout, panels, bytes_of(*panels))

"""Arrays become launches: a kernel is chosen, its launches are planned once and queued."""

import math
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import lru_cache, partial
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from gemmlab.arguments import whole_number
from gemmlab.here.detection import detect
from gemmlab.here.driver import gpu_status
from gemmlab.instructions import host
from gemmlab.multiplication import arrays, plans, products
from gemmlab.multiplication.arrays import ITEM, SECTOR, Split, Stack, contiguous, whole
from gemmlab.multiplication.choosing import (
    DECIDED,
    MOST,
    OF_TENSORS,
    WGMMA,
    WHOLE,
    Choice,
    fastest,
    few,
    fitting,
    parts_of,
)
from gemmlab.multiplication.machines import Planning
from gemmlab.multiplication.plans import Bound, Plan
from gemmlab.multiplication.with_torch import (
    here,
    is_transformed,
    mode,
    of_few,
    operator,
    recorded,
)

# So many operations take a processor some ten milliseconds, as long as it takes to bring operands
# of the host to a GPU and C back.
FEW_ON_HOST = 2 * 1536**3
KINDS = 256  # of operands, whose plans are kept


class Terms(NamedTuple):
    """A caller asks for these: bytes of a workspace at most, or None, and how many products."""

    budget: int | None
    products: int


def checked(budget: int | None, products: int) -> Terms:
    """Check what a caller asks for."""
    if products not in (1, 2, WHOLE) or isinstance(products, bool):
        raise ValueError(f"products={products!r}; use 1, 2 or {WHOLE}")
    return Terms(None if budget is None else whole_number("workspace_bytes", budget), products)


def choose(a: Any, b: Any, budget: int | None, products: int = WHOLE) -> Choice:
    """Choose what multiplies two arrays, and in which panels."""
    return _chosen(*arrays.check(a, whole(b)), a, b, checked(budget, products))


Product = Callable[[Any, Any], Any]  # (a, b) -> A·B


def multiply(a: Any, b: Any, budget: int | None, products: int = WHOLE) -> Any:
    """Return A·B, in an array of the same library on the same device."""
    try:
        product = DECIDED[
            type(a), a.dtype, a.shape, a.device, type(b), b.dtype, b.shape, b.device,
            budget, products,
        ]  # fmt: skip
    except (KeyError, AttributeError, TypeError):  # new ones, no arrays, devices without a hash
        product = product_of(a, b, budget, products)
    return product(a, b)


def product_of(a: Any, b: Any, budget: int | None, products: int) -> Product:
    """Return what multiplies operands like these, as it was decided before or is decided now."""
    terms = checked(budget, products)
    try:
        return DECIDED[kinds_of(a, b, terms)]
    except (KeyError, AttributeError):  # new ones, or no arrays, as `check` tells
        return decide(a, b, terms)


def kinds_of(a: Any, b: Any, terms: Terms) -> tuple:
    """Return what decides who multiplies; the number of a device in place of one without a hash."""
    at_a, at_b = (x.device if type(x.device).__hash__ else _number(x.device) for x in (a, b))
    return type(a), a.dtype, a.shape, at_a, type(b), b.dtype, b.shape, at_b, *terms


def _number(device: Any) -> int | None:
    return getattr(device, "id", None)


def decide(a: Any, b: Any, terms: Terms) -> Product:
    """Check operands of a new kind, and return what multiplies them, which is noted."""
    place, sizes = arrays.check(a, whole(b))
    if isinstance(b, Split) and terms.budget is not None:
        raise ValueError(f"workspace_bytes={terms.budget} with a split b; a split has its memory")
    if place.device is None:
        product = partial(_from_host, place, sizes, terms)
        return with_gradients(place, product, terms) if place.library == "torch" else product
    product = partial(multiplied, place, terms, {})
    if not arrays.may_multiply(place):
        return product
    choice = _choice(place.device, sizes, "nn", terms, place.library, is_split(b))
    if place.library == "torch":
        let_pytorch_multiply_few(arrays.library_of(place))
        size = choice.workspace_bytes - (b.nbytes if is_split(b) else 0)
        if terms.budget is None and size <= plans.MOST_KEPT:
            product = by_kept_calls(place, sizes, terms, b, product)
        product = with_gradients(place, product, terms)
    if choice.kernel == "library":  # unless it does not keep to FP32, as is looked at each time
        product = arrays.by_library(place, product)
    elif not (arrays.is_plain(a) and arrays.is_plain(whole(b))):
        product = partial(by_operator, budget=terms.budget, products=terms.products)
    if len(DECIDED) >= KINDS:
        DECIDED.clear()
    DECIDED[kinds_of(a, b, terms)] = product
    return product


def let_pytorch_multiply_few(torch: ModuleType) -> None:
    """Hand tensors over at once where multiplications are too few for any kernel of ours.

    Once: whatever calls `matmul` and is compiled by PyTorch is compiled anew for another function.
    """
    if torch.Tensor not in OF_TENSORS:
        below = few(detect()) if gpu_status().works else math.inf
        product = of_few(torch, below, multiply, by_operator)
        OF_TENSORS.update(dict.fromkeys((torch.Tensor, torch.nn.Parameter), product))


def with_gradients(place: arrays.Place, product: Product, terms: Terms) -> Product:
    """Return a product that PyTorch records where it asks for gradients, or follows by its own."""
    torch = arrays.library_of(place)
    enabled, transforms = torch.is_grad_enabled, is_transformed(torch)

    def again(a: Any, b: Any) -> Any:
        return multiply(a, b, *terms)

    def multiply_recorded(a: Any, b: Any) -> Any:
        other = whole(b)
        if transforms():
            return transformed(torch, a, other)
        if (a.requires_grad or other.requires_grad) and enabled():
            return recorded(a, other, lambda a, _: product(a, b), again)
        return product(a, b)

    return multiply_recorded


def transformed(torch: ModuleType, a: Any, b: Any) -> Any:
    """Return A·B by PyTorch, which alone knows what its tensors stand for now."""
    if not arrays.keeping_to_fp32(torch)():
        raise ValueError(
            "PyTorch's own product is what vmap, jvp and such transforms follow, and it may round "
            "to TF32 or 16 bits now; use torch.set_float32_matmul_precision('highest') and no "
            "autocast"
        )
    return torch.matmul(a, b)


def by_kept_calls(
    place: arrays.Place, sizes: tuple[int, int, int, int], terms: Terms, b: Any, otherwise: Product
) -> Product:
    """Return the product of PyTorch's tensors by a kernel, whose calls are kept with a workspace.

    Calls that come back are found by what tensors and stream are alone, of operands like B and A of
    these sizes.
    otherwise : multiplies where a caller records, on a GPU that is not the current one, and where
        nothing can be kept
    """
    torch, device, kind = arrays.library_of(place), place.device, object()
    current, is_recording, stream_on, empty = here(torch)
    shape = sizes[1:3] if len(b.shape) == 2 else sizes[:3]
    strides, float32 = contiguous(shape, 1), torch.float32

    def multiply(a: Any, b: Any) -> Any:
        halves, other = (b.halves, b.array) if isinstance(b, Split) else (None, b)
        if current() != device or is_recording() or a.is_neg() or other.is_neg():
            return otherwise(a, b)
        stream, c = stream_on(device), empty(shape, strides, float32)
        beside = 0 if halves is None else halves.data_ptr()
        found_by = (
            kind, a.data_ptr(), a.stride(), other.data_ptr(), other.stride(), c.data_ptr(), beside
        )  # fmt: skip
        workspace = plans.WORKSPACES.get((device, stream))
        bound = workspace and workspace.bounds.get(found_by)
        if bound is None:
            bound = kept(place, terms, stream, (a, other, c), beside, found_by)
        if bound is None:
            return otherwise(a, b)
        bound.queue(records=False)
        return c

    return multiply


def kept(
    place: arrays.Place, terms: Terms, stream: int, tensors: tuple[Any, Any, Any], halves: int,
    found_by: tuple,
) -> Bound | None:  # fmt: skip
    """Keep the calls for A, B and C; None where memory or calls are too many, or A or B copied."""
    if not all(ITEM in arrays.strides_of(x)[-2:] for x in tensors):
        return None
    seen = [arrays.seen(x) for x in tensors]
    with plans.Current(place.device):
        plan = planned(place.device, terms, tuple(x.kind for x in seen), halves > 0)
        if len(plan.works) > plans.LONG:
            return None
        workspace = plans.workspace(
            (place.device, stream), plan.size, lambda size: arrays.empty(place, (size,), "uint8")
        )
    starts = [x.address - x.address % SECTOR for x in seen]
    return workspace and workspace.keep(found_by, plan, stream, (*starts, halves))


def by_operator(a: Any, b: Any, budget: int | None, products: int) -> Any:
    """Multiply tensors that stand for others, such as those of a compiler, by an operator."""
    operator_is_there()
    return sys.modules["torch"].ops.gemmlab.matmul(a, whole(b), budget, products)


def operator_is_there() -> bool:
    """Give PyTorch the operator `gemmlab::matmul`; True.

    PyTorch's compiler calls this while it traces, and takes what it returns for a constant.
    """
    return operator(sys.modules["torch"], multiply) is not None


operator_is_there._dynamo_marked_constant = True  # as torch.compiler.assume_constant_result does


def fp32_from_fp16(products: int) -> Any:
    """Return PyTorch's mode in which its products are ours, where a kernel here is faster.

    Raises ModuleNotFoundError without PyTorch.
    """
    try:
        import torch
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"{error}: gemmlab.fp32_from_fp16() is for programs of PyTorch; gemmlab.matmul(a, b) "
            "takes arrays of NumPy, CuPy and Numba, too", name=error.name,
        ) from None  # fmt: skip
    return mode(torch, partial(in_place_of_torch, checked(None, products)))


def in_place_of_torch(terms: Terms, a: Any, b: Any) -> Any:
    """Return A·B of tensors, or NotImplemented for what PyTorch multiplies."""
    return multiply(a, b, *terms) if replaces(a, b, terms) else NotImplemented


def replaces(a: Any, b: Any, terms: Terms) -> bool:
    """Whether a kernel of ours multiplies two matrices, or stacks of them, in place of PyTorch."""
    if str(a.dtype) != "torch.float32" or a.dtype != b.dtype or a.device.type != "cuda":
        return False
    if not arrays.multiplies(arrays.Place("torch", a.device.index)):
        return False  # who asks for TF32 or for 16 bits gets them
    strided = sys.modules["torch"].strided
    if not all(arrays.is_plain(x) and x.layout == strided for x in (a, b)):
        return False
    if a.dim() != b.dim() or a.dim() not in (2, 3) or 0 in (*a.shape, *b.shape):
        return False
    if a.shape[:-2] != b.shape[:-2] or a.shape[-1] != b.shape[-2] or a.device != b.device:
        return False
    sizes = a.shape[0] if a.dim() == 3 else 1, a.shape[-2], b.shape[-1], a.shape[-1]
    return _choice(a.device.index, sizes, "nn", terms, "torch").kernel != "library"


def multiplied(place: arrays.Place, terms: Terms, known: dict[tuple, Plan], a: Any, b: Any) -> Any:
    """Return A·B as one of our kernels computes it, on the GPU where A and B are.

    known : the plans of one kind of operands, by where they are and how they are stored
    """
    with plans.Current(place.device):
        c, bound, _ = ready(place, a, b, terms, known)
        bound.queue(plans.is_recording(bound.stream))
    return c


def split(b: Any) -> Split:
    """Split an array, on its library's stream; where no kernel here reads halves, keep it alone."""
    place, (batch, *_) = arrays.check(arrays.turned(b), b)
    if place.device is None or not gpu_status().works or batch > MOST:
        return Split(b)
    if detect().compute_capability != WGMMA:
        return Split(b)
    with plans.Current(place.device):
        seen = arrays.seen(b)
        plan, _ = halving(place.device, seen.kind)
        halves = arrays.empty(place, (plan.size,), "uint8")
        start, beside = seen.address - seen.address % SECTOR, arrays.address_of(halves)
        bound = plan.bound(arrays.stream_of(place), (0, start, 0, beside))
        bound.queue(plans.is_recording(bound.stream))
    return Split(seen.owner, halves)


def _chosen(
    place: arrays.Place, sizes: tuple[int, int, int, int], a: Any, b: Any, terms: Terms
) -> Choice:
    halved, b = is_split(b), whole(b)
    if arrays.multiplies(place):  # however operands are stored
        choice = _choice(place.device, sizes, "nn", terms, place.library, halved)
        if choice.kernel == "library":
            return choice
    layout = _layout(map(arrays.is_transposed, (a, b)))
    return _choice(place.device, sizes, layout, terms, None, halved)


def is_split(b: Any) -> bool:
    """Whether halves of B are there."""
    return isinstance(b, Split) and b.halves is not None


def ready(
    place: arrays.Place, a: Any, b: Any, terms: Terms, known: dict[tuple, Plan] | None = None
) -> tuple[Any, Bound, Any]:
    """C, what is to be queued for it, and a workspace to keep until it is, on the current GPU."""
    c = arrays.empty(place, (*a.shape[:-1], b.shape[-1]), "float32")
    halves, b = (b.halves, b.array) if isinstance(b, Split) else (None, b)
    of_a, of_b, of_c = arrays.where(a), arrays.where(b), arrays.address_of(c)
    plan, kept = None, (a, b)
    if of_a is not None and of_b is not None and known is not None:
        kinds = of_a[0] % SECTOR, of_a[1], of_b[0] % SECTOR, of_b[1], of_c % SECTOR
        plan, starts = known.get(kinds), (of_a[0], of_b[0], of_c)
    if plan is None:
        kept = operands = arrays.seen(a), arrays.seen(b), arrays.seen(c)
        starts = tuple(x.address for x in operands)
        plan = planned(place.device, terms, tuple(x.kind for x in operands), halves is not None)
        if known is not None and operands[0].owner is a and operands[1].owner is b:
            known[kinds] = plan  # nothing was copied
    # Back to its library at the end, which gives it to what the stream does afterwards.
    workspace = arrays.empty(place, (plan.size,), "uint8") if plan.size else None
    addresses = (
        *[start - start % SECTOR for start in starts],
        arrays.address_of(workspace) if plan.size else 0,
        0 if halves is None else arrays.address_of(halves),
    )
    return c, plan.bound(arrays.stream_of(place), addresses), (kept, workspace)


@lru_cache(maxsize=KINDS)
def planned(device: int, terms: Terms, kinds: tuple[arrays.Kind, ...], is_split: bool) -> Plan:
    """Return the plan for A, B and C of these kinds, on the GPU that is the current one."""
    a, b, c = (Stack.of(number, *kind) for number, kind in enumerate(kinds))
    layout = _layout(stack.is_transposed for stack in (a, b))
    choice = _choice(device, (*c.shape, a.shape[2]), layout, terms, None, is_split)
    planning, there = Planning(), None
    if is_split and choice.kernel == "tcec_batched":
        _, there = halving(device, kinds[1])
    products.multiply(planning, choice, a, b, c, there)
    return planning.plan(choice)


@lru_cache(maxsize=KINDS)
def halving(device: int, kind: arrays.Kind) -> tuple[Plan, products.Operand]:
    """Return the plan that writes the halves of a B of this kind, and B as it is then multiplied.

    To the plan, the memory of the halves is its workspace.
    """
    b, planning = Stack.of(1, *kind), Planning()
    batch, k, n = b.shape
    layout = "n" + _layout([b.is_transposed])
    choice = Choice("tcec_batched", "", None, batch, 1, n, k, layout, (batch, 1, n))
    operand = products.prepare(planning, choice, b, 1)
    moved = [replace(x, of=plans.HALVES) for x in (*operand.out, operand.back)]
    there = replace(operand, out=tuple(moved[:-1]), back=moved[-1])
    return planning.plan(choice), there


def _from_host(
    place: arrays.Place, sizes: tuple[int, int, int, int], terms: Terms, a: Any, b: Any
) -> Any:
    """Return the product of arrays of the host: on the GPU that is there, or by NumPy."""
    choice = choose(a, b, *terms)
    a, b = arrays.on_host(a), arrays.on_host(whole(b))
    if choice.kernel == "numpy":
        return arrays.as_kind(np.matmul(a, b), place)
    cuda = host.cuda()
    there = (cuda.to_device(np.ascontiguousarray(x)) for x in (a, b))
    return arrays.as_kind(multiply(*there, *terms).copy_to_host(), place)


def _layout(transposed: Iterable[bool]) -> str:
    return "".join("nt"[one] for one in transposed)


@lru_cache(maxsize=KINDS)
def _choice(
    device: int | None, sizes: tuple[int, int, int, int], layout: str, terms: Terms,
    library: str | None = None, is_split: bool = False,
) -> Choice:  # fmt: skip
    """Return the kernel, its tiling and its panels.

    device : None for the host; library : that may multiply in the kernel's place
    is_split : B has been split already
    """
    (batch, m, n, k), (budget, count), tiling = sizes, terms, None
    if not gpu_status().works and library:
        kernel, why = "library", f"{library} multiplies: Numba, which compiles, has no GPU"
    elif not gpu_status().works:
        kernel, why = "numpy", "no GPU is used: NumPy multiplies in FP32, on the processor"
    elif device is None and 2 * batch * m * n * k < FEW_ON_HOST:
        kernel, why = "numpy", "the operands are small and on the host: NumPy multiplies there"
    else:
        kernel, tiling, why = fastest(detect(), sizes, layout, library, is_split, count)
    by_parts = kernel == "tcec_batched"
    parts = parts_of(tiling, sizes, detect().sms) if by_parts else 1
    count = count if by_parts else WHOLE
    bytes_of = partial(products.workspace_bytes, kernel, layout, k, parts, count)
    panels = fitting((batch, m, n), bytes_of, budget)
    return Choice(
        kernel, why, tiling, batch, m, n, k, layout, panels, bytes_of(*panels), parts, count
    )

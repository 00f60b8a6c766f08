"""What PyTorch asks of a product: short calls, gradients, an operator for its compiler, and a mode.

Gradients of a product are products, too. The mode is for programs that are not to be edited: what
they ask of PyTorch in FP32 is multiplied by `matmul` instead, wherever that does not hand it back.
"""

import sys
from collections.abc import Callable, Mapping
from functools import cache
from types import ModuleType
from typing import Any, NamedTuple

from gemmlab.multiplication.arrays import asking_for_tf32, stream_of_torch
from gemmlab.multiplication.choosing import LEAST_K, WHOLE

# ----------------------------------------------------------------------------------- short calls


Multiply = Callable[[Any, Any, int | None, int], Any]  # (a, b, workspace_bytes, products) -> A·B


def of_few(torch: ModuleType, few: float, otherwise: Multiply, traced: Multiply) -> Multiply:
    """Return the product of tensors, which is PyTorch's own at once where multiplications are few.

    few : multiplications, below which no kernel of ours is known to be faster
    otherwise : looks at everything; traced : for PyTorch's compiler
    To read one attribute of a tensor takes a tenth of a microsecond, and a call of PyTorch ten, so
    that few are read. `mm` and `bmm` refuse what does not fit together. What else is not for them
    shows in their result: operands of other formats, and those that autocast has rounded.
    """
    mm, bmm, float32 = torch.mm, torch.bmm, torch.float32
    plain, below = (torch.Tensor, torch.nn.Parameter), LEAST_K * few
    may_round, is_traced = asking_for_tf32(torch), torch.compiler.is_dynamo_compiling

    def multiply_few(a: Any, b: Any, workspace_bytes: int | None, products: int) -> Any:
        if is_traced():
            return traced(a, b, workspace_bytes, products)
        is_usual = products == WHOLE and workspace_bytes is None and type(b) in plain
        try:
            if is_usual and a.is_cuda and not may_round():
                # m·k·k·n is k times as much as is multiplied, and k at least LEAST_K for ours: to
                # read a shape takes longer.
                elements = a.numel()
                if 0 < elements * b.numel() < below or 0 < elements * b.shape[-1] < few:
                    c = mm(a, b) if a.ndim == 2 else bmm(a, b)
                    if c.dtype is float32:
                        return c
        except (IndexError, RuntimeError):
            pass  # who looks at everything says what is wrong
        return otherwise(a, b, workspace_bytes, products)

    return multiply_few


class Here(NamedTuple):
    """PyTorch's functions for its current GPU, those that take least time.

    device : () -> its number; is_recording : () -> whether its stream records a graph
    stream : (device) -> address; empty : (shape, strides, dtype) -> a tensor
    """

    device: Callable[[], int]
    is_recording: Callable[[], bool]
    stream: Callable[[int], int]
    empty: Callable[[tuple[int, ...], tuple[int, ...], Any], Any]


def here(torch: ModuleType) -> Here:
    """Return them; its compiler allocates by the last, in a third of the time of `torch.empty`."""
    inner, cuda = torch._C, torch.cuda
    guards = getattr(getattr(inner, "_dynamo", None), "guards", None)
    empty = getattr(guards, "_empty_strided_cuda", None) or (
        lambda shape, strides, dtype: torch.empty(shape, dtype=dtype, device="cuda")
    )
    return Here(
        getattr(inner, "_cuda_getDevice", cuda.current_device),
        getattr(inner, "_cuda_isCurrentStreamCapturing", cuda.is_current_stream_capturing),
        stream_of_torch(torch),
        empty,
    )


# ------------------------------------------------------------------------------------- gradients


def is_transformed(torch: ModuleType) -> Callable[[], bool]:
    """Return what tells whether tensors stand for others now: under `vmap`, `jvp` and the like.

    PyTorch's own products follow that, since no kernel of ours can.
    """
    inner = getattr(getattr(torch, "_C", None), "_functorch", None)
    transforms = getattr(inner, "peek_interpreter_stack", lambda: None)
    duals = getattr(torch.autograd, "forward_ad", None)

    def is_one() -> bool:
        return transforms() is not None or getattr(duals, "_current_level", -1) >= 0

    return is_one


def recorded(a: Any, b: Any, product: Callable, again: Callable) -> Any:
    """Return product(a, b), recorded by PyTorch.

    again : computes gradients, of transposed views, and is recorded itself where PyTorch asks for
        gradients of gradients
    """
    return _recorded(sys.modules["torch"])(a, b, product, again)


@cache
def _recorded(torch: ModuleType) -> Callable:
    class Product(torch.autograd.Function):
        """C = AB."""

        @staticmethod
        def forward(ctx: Any, a: Any, b: Any, product: Callable, again: Callable) -> Any:
            ctx.save_for_backward(a, b)
            ctx.again = again
            return product(a, b)

        @staticmethod
        def backward(ctx: Any, dc: Any) -> tuple:
            return (*gradients(ctx, dc, ctx.again), None, None)

    return Product.apply


def gradients(ctx: Any, dc: Any, multiply: Callable) -> tuple[Any, Any]:
    """Return dA = dC·Bᵀ and dB = Aᵀ·dC, each where it is asked for."""
    (a, b), (for_a, for_b, *_) = ctx.saved_tensors, ctx.needs_input_grad
    return (
        multiply(dc, b.transpose(-2, -1)) if for_a else None,
        multiply(a.transpose(-2, -1), dc) if for_b else None,
    )


# -------------------------------------------------------------------------------------- operator


@cache
def operator(torch: ModuleType, multiply: Callable) -> Callable:
    """Give PyTorch the operator `gemmlab::matmul`, whose shapes its compiler knows.

    multiply : (a, b, budget, products) -> A·B
    """

    def product(a: Any, b: Any, budget: int | None, products: int) -> Any:
        with torch.no_grad():  # the operator itself is recorded
            return multiply(a, b, budget, products)

    def shape_alone(a: Any, b: Any, budget: int | None, products: int) -> Any:
        return a.new_empty((*a.shape[:-1], b.shape[-1]))

    def keep(ctx: Any, inputs: tuple, output: Any) -> None:
        a, b, *ctx.terms = inputs
        ctx.save_for_backward(a, b)

    def back(ctx: Any, dc: Any) -> tuple:
        return (*gradients(ctx, dc, lambda a, b: found(a, b, *ctx.terms)), None, None)

    schema = "(Tensor a, Tensor b, int? budget, int products) -> Tensor"
    found = torch.library.custom_op("gemmlab::matmul", product, mutates_args=(), schema=schema)
    found.register_fake(shape_alone)
    found.register_autograd(back, setup_context=keep)
    return found


# ------------------------------------------------------------------------------------------ mode

EINSUM = {"ij,jk->ik", "bij,bjk->bik"}  # products, by these letters or others in their place
KEYWORDS = {"bias", "alpha", "beta"}  # that are understood


def mode(torch: ModuleType, multiply: Callable) -> Any:
    """Return a context in which PyTorch's products are those of `multiply`.

    multiply : (a, b) -> A·B of matrices, or of stacks of them, or NotImplemented for PyTorch's own
    """

    def product(a: Any, b: Any) -> Any:
        if a.dim() > 2 and b.dim() == 2:  # all rows of A below each other: one product
            if not a.is_contiguous():
                return NotImplemented  # they would be copied
            c = multiply(a.reshape(-1, a.shape[-1]), b)
            return c if c is NotImplemented else c.reshape(*a.shape[:-1], b.shape[-1])
        return multiply(a, b)

    def linear(x: Any, weight: Any, bias: Any = None) -> Any:
        c = product(x, weight.t()) if weight.dim() == 2 else NotImplemented
        return c if c is NotImplemented or bias is None else c + bias

    def addmm(c: Any, a: Any, b: Any, *, beta: float = 1, alpha: float = 1) -> Any:
        ab = product(a, b)
        if ab is NotImplemented:
            return ab
        return (ab if alpha == 1 else alpha * ab) + (c if beta == 1 else beta * c)

    def einsum(equation: Any, *operands: Any) -> Any:
        is_one = isinstance(equation, str) and len(operands) == 2 and named(equation) in EINSUM
        return product(*operands) if is_one else NotImplemented

    of = torch.Tensor
    instead: Mapping[Any, Callable] = {
        **dict.fromkeys((torch.matmul, of.matmul, of.__matmul__), product),
        **dict.fromkeys((torch.mm, of.mm, torch.bmm, of.bmm), product),
        **dict.fromkeys((torch.addmm, of.addmm), addmm),
        torch.nn.functional.linear: linear,
        torch.einsum: einsum,
    }
    return _mode(torch)(instead)


def named(equation: str) -> str:
    """Return an equation of `einsum` with the letters i, j and k, behind b where there are four.

    >>> named("xyz, xzw -> xyw")
    'bij,bjk->bik'
    """
    equation = equation.replace(" ", "")
    letters = "".join(dict.fromkeys(filter(str.isalpha, equation)))
    names = {3: "ijk", 4: "bijk"}.get(len(letters))
    return equation.translate(str.maketrans(letters, names)) if names else ""


@cache
def _mode(torch: ModuleType) -> type:
    class Fp32FromFp16(torch.overrides.TorchFunctionMode):
        """While it is entered, products of PyTorch are looked at."""

        def __init__(self, instead: Mapping[Any, Callable]) -> None:
            super().__init__()
            self.instead = instead

        def __torch_function__(
            self, function: Callable, types: Any, args: tuple = (), kwargs: Any = None
        ) -> Any:
            kwargs = kwargs or {}
            ours = self.instead.get(function)
            if ours is not None and set(kwargs) <= KEYWORDS:  # else an `out`, or a name of its own
                c = ours(*args, **kwargs)
                if c is not NotImplemented:
                    return c
            return function(*args, **kwargs)

    return Fp32FromFp16

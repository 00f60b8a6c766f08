"""What PyTorch asks of a product: gradients, an operator for its compiler, and a mode.

Gradients of a product are products, too. The mode is for programs that are not to be edited: what
they ask of PyTorch in FP32 is multiplied by `matmul` instead, wherever that does not hand it back.
"""

import sys
from collections.abc import Callable, Mapping
from functools import cache
from types import ModuleType
from typing import Any

# ------------------------------------------------------------------------------------- gradients


def is_recorded(a: Any, b: Any) -> bool:
    """Whether PyTorch records what is done with two arrays of one library."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.is_grad_enabled():
        return False
    return isinstance(a, torch.Tensor) and bool(a.requires_grad or b.requires_grad)


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

"""Gradients of a product for PyTorch, which are products, too."""

import sys
from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any


def is_recorded(a: Any, b: Any) -> bool:
    """Whether PyTorch records what is done with two arrays of one library."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.is_grad_enabled():
        return False
    return isinstance(a, torch.Tensor) and bool(a.requires_grad or b.requires_grad)


def recorded(a: Any, b: Any, product: Callable, again: Callable) -> Any:
    """Return product(a, b), recorded by PyTorch.

    again : computes gradients, dA = dC·Bᵀ and dB = Aᵀ·dC, of transposed views, and is recorded
        itself where PyTorch asks for gradients of gradients
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
            (a, b), (for_a, for_b, *_) = ctx.saved_tensors, ctx.needs_input_grad
            da = ctx.again(dc, b.transpose(-2, -1)) if for_a else None
            db = ctx.again(a.transpose(-2, -1), dc) if for_b else None
            return da, db, None, None

    return Product.apply

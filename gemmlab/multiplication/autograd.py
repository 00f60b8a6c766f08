"""Products that PyTorch can go back through: the gradients of C = AB are products, too."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any


def is_recorded(*tensors: Any) -> bool:
    """Whether PyTorch records what is done with these arrays, to go back through it."""
    torch = sys.modules.get("torch")
    return bool(
        torch
        and all(isinstance(x, torch.Tensor) for x in tensors)
        and torch.is_grad_enabled()
        and any(x.requires_grad for x in tensors)
    )


@cache
def recorded(torch: ModuleType, product: Callable, again: Callable) -> Callable:
    """The function (a, b, workspace_bytes) that computes C = AB and is recorded by PyTorch.

    product : computes C; again : computes gradients, dA = dC·Bᵀ and dB = Aᵀ·dC, of transposed
    views, and is recorded itself where PyTorch asks for gradients of gradients
    """

    class Product(torch.autograd.Function):
        """C = AB."""

        @staticmethod
        def forward(ctx: Any, a: Any, b: Any, workspace_bytes: int | None) -> Any:
            ctx.save_for_backward(a, b)
            ctx.workspace_bytes = workspace_bytes
            return product(a, b, workspace_bytes)

        @staticmethod
        def backward(ctx: Any, dc: Any) -> tuple[Any, Any, None]:
            (a, b), (for_a, for_b, _) = ctx.saved_tensors, ctx.needs_input_grad
            da = again(dc, b.transpose(-2, -1), ctx.workspace_bytes) if for_a else None
            db = again(a.transpose(-2, -1), dc, ctx.workspace_bytes) if for_b else None
            return da, db, None

    return Product.apply

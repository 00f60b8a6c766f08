"""What PyTorch asks of a product: an operator for its compiler, and a mode.

The mode is for programs that are not to be edited: what they ask of PyTorch in FP32 is multiplied
by `matmul` instead, wherever that does not hand it back to PyTorch anyway.
"""

import sys
from collections.abc import Callable, Mapping
from functools import cache
from types import ModuleType
from typing import Any

from gemmlab.multiplication import calling

NAME = "gemmlab::matmul"
EINSUM = {"ij,jk->ik", "bij,bjk->bik"}  # products, by the first letters of the alphabet or others


# -------------------------------------------------------------------------------------- operator


def operator_is_there() -> bool:
    """Give PyTorch the operator `gemmlab::matmul`, whose shapes its compiler knows; True.

    The compiler calls this function while it traces, and takes what it returns for a constant.
    """
    return _operator(sys.modules["torch"]) is not None


operator_is_there._dynamo_marked_constant = True  # as torch.compiler.assume_constant_result does


@cache
def _operator(torch: ModuleType) -> Any:
    def product(a: Any, b: Any, budget: int | None) -> Any:
        with torch.no_grad():  # the operator itself is recorded
            return calling.multiply(a, b, budget)

    def shape_alone(a: Any, b: Any, budget: int | None) -> Any:
        return a.new_empty((*a.shape[:-1], b.shape[-1]))

    def keep(ctx: Any, inputs: tuple, output: Any) -> None:
        a, b, ctx.budget = inputs
        ctx.save_for_backward(a, b)

    def back(ctx: Any, dc: Any) -> tuple:
        (a, b), (for_a, for_b, _) = ctx.saved_tensors, ctx.needs_input_grad
        da = again(dc, b.transpose(-2, -1), ctx.budget) if for_a else None
        db = again(a.transpose(-2, -1), dc, ctx.budget) if for_b else None
        return da, db, None

    schema = "(Tensor a, Tensor b, int? budget) -> Tensor"
    again = torch.library.custom_op(NAME, product, mutates_args=(), schema=schema)
    again.register_fake(shape_alone)
    again.register_autograd(back, setup_context=keep)
    return again


# ------------------------------------------------------------------------------------------ mode


def fp32_from_fp16() -> Any:
    """Return a context in which PyTorch's own FP32 products on a GPU are those of `matmul`.

    with gemmlab.fp32_from_fp16():
        loss = network(x)

    It holds for `matmul`, `@`, `mm`, `bmm`, `addmm`, `linear`, and for `einsum` where that is one
    product; for float32 tensors on a GPU. All else, and what `matmul` would hand to PyTorch, is
    left as it is. Raises ModuleNotFoundError where PyTorch is not installed.
    """
    import torch

    return _mode(torch)()


def replaces(a: Any, b: Any) -> bool:
    """Whether a kernel of ours multiplies two matrices, or stacks of them, in place of PyTorch."""
    if str(a.dtype) != "torch.float32" or a.dtype != b.dtype or a.device.type != "cuda":
        return False
    if a.dim() != b.dim() or a.dim() not in (2, 3) or 0 in (*a.shape, *b.shape):
        return False
    if a.shape[:-2] != b.shape[:-2] or a.shape[-1] != b.shape[-2] or a.device != b.device:
        return False
    return calling.choose(a, b, None).kernel != "library"


def product(a: Any, b: Any) -> Any:
    """Return A·B by `matmul`, or NotImplemented for what PyTorch multiplies.

    A stack of A's and one matrix B is one product: all rows of A below each other.
    """
    if a.dim() > 2 and b.dim() == 2:
        rows = a.reshape(-1, a.shape[-1])
        c = product(rows, b)
        return c if c is NotImplemented else c.reshape(*a.shape[:-1], b.shape[-1])
    return calling.multiply(a, b, None) if replaces(a, b) else NotImplemented


def linear(x: Any, weight: Any, bias: Any = None) -> Any:
    """Return X·Wᵀ and a bias, as `torch.nn.functional.linear` does."""
    c = product(x, weight.t()) if weight.dim() == 2 else NotImplemented
    return c if c is NotImplemented or bias is None else c + bias


def addmm(c: Any, a: Any, b: Any, *, beta: float = 1, alpha: float = 1) -> Any:
    """Return α·AB + β·C, as `torch.addmm` does."""
    ab = product(a, b)
    if ab is NotImplemented:
        return ab
    return (ab if alpha == 1 else alpha * ab) + (c if beta == 1 else beta * c)


def einsum(equation: Any, *operands: Any) -> Any:
    """A product of two matrices, or of stacks of them, in the order of `matmul`."""
    if not isinstance(equation, str) or len(operands) != 2:
        return NotImplemented
    letters = dict.fromkeys(x for x in equation if x.isalpha())
    for names in ("ijk", "bijk"):
        named = equation.replace(" ", "").translate(str.maketrans("".join(letters), names)) if (
            len(letters) == len(names)
        ) else ""  # fmt: skip
        if named in EINSUM:
            return product(*operands)
    return NotImplemented


@cache
def _mode(torch: ModuleType) -> type:
    of = torch.Tensor
    instead: Mapping[Any, Callable] = {
        **dict.fromkeys((torch.matmul, of.matmul, of.__matmul__), product),
        **dict.fromkeys((torch.mm, of.mm, torch.bmm, of.bmm), product),
        **dict.fromkeys((torch.addmm, of.addmm), addmm),
        torch.nn.functional.linear: linear,
        torch.einsum: einsum,
    }

    class Fp32FromFp16(torch.overrides.TorchFunctionMode):
        """While it is entered, products of PyTorch are looked at."""

        def __torch_function__(
            self, function: Callable, types: Any, args: tuple = (), kwargs: Any = None
        ) -> Any:
            kwargs = kwargs or {}
            if (ours := instead.get(function)) is not None and "out" not in kwargs:
                c = ours(*args, **kwargs)
                if c is not NotImplemented:
                    return c
            return function(*args, **kwargs)

    return Fp32FromFp16

"""As much of PyTorch as `matmul` asks for, over NumPy: tensors of the host, and their gradients."""

from __future__ import annotations

from contextlib import contextmanager
from types import ModuleType, SimpleNamespace

import numpy as np


class Tensor:
    """A tensor; `grad` after `backward`."""

    def __init__(self, data, requires_grad=False, made_by=None):
        self.data, self.requires_grad, self.made_by, self.grad = data, requires_grad, made_by, None
        self.device = SimpleNamespace(type="cpu", index=None)

    shape = property(lambda self: self.data.shape)
    dtype = property(lambda self: f"torch.{self.data.dtype}")
    ndim = property(lambda self: self.data.ndim)
    is_cuda = property(lambda self: self.device.type == "cuda")

    def detach(self):
        return Tensor(self.data)

    def numpy(self):
        if self.requires_grad:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad.")
        return self.data

    def numel(self):
        return self.data.size

    def data_ptr(self):
        return self.data.__array_interface__["data"][0]

    def stride(self):
        return tuple(step // self.data.itemsize for step in self.data.strides)

    def resolve_neg(self):
        return self

    def is_neg(self):
        return False

    def contiguous(self):
        return Tensor(np.ascontiguousarray(self.data))

    def transpose(self, x, y):
        def back(dc):
            return (dc.transpose(x, y),)

        return recorded(Tensor(self.data.swapaxes(x, y)), (self,), back)

    def backward(self, dc):
        """Add the gradient to all that this tensor was made from."""
        if self.made_by:
            operands, back = self.made_by
            with no_grad():
                gradients = back(dc)
            for operand, gradient in zip(operands, gradients, strict=True):
                if isinstance(operand, Tensor) and operand.requires_grad:
                    operand.backward(gradient)
        elif self.grad is None:
            self.grad = dc
        else:
            self.grad = Tensor(self.grad.data + dc.data)


Tensor.__module__ = "torch"
ENABLED = [True]


def is_grad_enabled():
    return ENABLED[-1]


@contextmanager
def no_grad():
    ENABLED.append(False)
    yield
    ENABLED.pop()


def recorded(result, operands, back):
    """A result that remembers what it was made from."""
    if is_grad_enabled() and any(isinstance(x, Tensor) and x.requires_grad for x in operands):
        return Tensor(result.data, True, (operands, back))
    return result


class Function:
    """`torch.autograd.Function`: forward is not recorded, but backward is asked for."""

    @classmethod
    def apply(cls, *operands):
        needs = tuple(isinstance(x, Tensor) and x.requires_grad for x in operands)
        context = SimpleNamespace(needs_input_grad=needs)
        context.save_for_backward = lambda *saved: setattr(context, "saved_tensors", saved)
        with no_grad():
            result = cls.forward(context, *operands)
        return recorded(result, operands, lambda dc: cls.backward(context, dc))


torch = ModuleType("torch")
torch.Tensor, torch.from_numpy = Tensor, Tensor
torch.autograd = SimpleNamespace(Function=Function)
torch.compiler = SimpleNamespace(is_compiling=lambda: False, is_dynamo_compiling=lambda: False)
torch.nn = SimpleNamespace(Parameter=Tensor)
torch.is_grad_enabled, torch.no_grad = is_grad_enabled, no_grad
torch.cuda = SimpleNamespace(current_stream=lambda device: SimpleNamespace(cuda_stream=0))

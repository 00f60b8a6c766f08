"""Kernels on Tensor Cores."""

"""Kernels of `matmul`: a stack of products, and the launches that scale its operands."""

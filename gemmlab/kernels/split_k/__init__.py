"""Kernels for small C and long k: the work along k is divided among blocks, and the parts added."""

"""Observing kernels: the backends that run them, measurements, and the store that keeps them."""

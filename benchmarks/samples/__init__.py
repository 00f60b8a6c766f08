"""Kernels, right and wrong, on which simulator, profiler and sanitizer are compared."""

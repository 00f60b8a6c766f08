"""Kernels that other compilers made, nvcc and Triton: predicted before they were timed."""

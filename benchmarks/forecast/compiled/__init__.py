"""Kernels that other compilers made, nvcc and Triton: predicted before they were timed."""

from benchmarks.forecast.compiled import of_nvcc, of_triton

CASES = {case.name: case for case in (*of_nvcc.CASES, *of_triton.CASES)}

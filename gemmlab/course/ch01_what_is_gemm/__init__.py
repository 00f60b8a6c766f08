"""Chapter 1, what is gemm: its questions and its exercises."""

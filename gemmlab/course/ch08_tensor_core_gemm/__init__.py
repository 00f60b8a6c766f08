"""Chapter 8, tensor core gemm: its questions and its exercises."""

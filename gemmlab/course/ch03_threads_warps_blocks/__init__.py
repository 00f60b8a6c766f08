"""Chapter 3, threads warps blocks: its questions and its exercises."""

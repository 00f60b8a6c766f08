"""Chapter 4, shared memory tiling: its questions and its exercises."""

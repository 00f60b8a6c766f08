"""Chapter 5, tile and wave quantization: its questions and its exercises."""

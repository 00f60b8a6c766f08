"""Chapter 6, register tiles: its questions and its exercises."""

"""Chapter 10, split k: its questions and its exercises."""

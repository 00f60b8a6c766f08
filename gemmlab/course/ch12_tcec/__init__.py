"""Chapter 12, tcec: its questions and its exercises."""

"""Chapter 0, start here: its questions and its exercises."""

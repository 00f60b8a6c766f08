"""Chapter 11, number formats: its questions and its exercises."""

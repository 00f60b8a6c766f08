"""Chapter 2, intensity and limiters: its questions and its exercises."""

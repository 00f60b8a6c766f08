"""Chapter 7, warps and fragments: its questions and its exercises."""

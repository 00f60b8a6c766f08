"""Chapter 9, software pipelining: its questions and its exercises."""

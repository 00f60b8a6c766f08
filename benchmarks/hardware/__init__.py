"""The library beside a GPU: checks in pieces, and what they gave."""

"""Device functions that rungs of TCEC share, with their counts."""

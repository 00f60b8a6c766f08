"""Device functions that rungs of ordinary arithmetic share, with their counts."""

"""Device functions that rungs on Tensor Cores share, with their counts."""

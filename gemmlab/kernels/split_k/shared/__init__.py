"""Device functions that rungs share which divide k among blocks, with their counts."""

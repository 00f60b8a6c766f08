"""Programs for `python -m benchmarks.live` that need what the tests have."""

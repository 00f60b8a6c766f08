"""Observations: where a kernel runs, what was observed, and what is kept of it."""

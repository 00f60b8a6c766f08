"""Predictions from compiled code: how long a kernel takes, and what it waits for."""

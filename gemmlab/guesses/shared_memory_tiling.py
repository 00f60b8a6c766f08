"""Answers to the questions of chapter 04, shared-memory tiling."""

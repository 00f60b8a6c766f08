"""Judging answers: each runs apart, on copies, beside a reference, and gets a diagnosis."""

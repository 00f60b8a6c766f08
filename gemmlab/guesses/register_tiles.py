"""Answers to the questions of chapter 06, register tiles."""

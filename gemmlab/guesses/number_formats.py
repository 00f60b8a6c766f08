"""Answers to the questions of chapter 11, number formats."""

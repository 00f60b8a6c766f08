"""Answers to the questions of chapter 07, warps and fragments."""

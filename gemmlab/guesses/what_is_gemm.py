"""Answers to the questions of chapter 01, what GEMM is."""

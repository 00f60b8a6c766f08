"""Answers to the questions of chapter 00, before the chapters."""

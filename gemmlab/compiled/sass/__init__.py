"""Compiled code: what ptxas makes of a kernel, and what that code does."""

"""The tests: folders as in gemmlab, and what several of them share in `support`."""

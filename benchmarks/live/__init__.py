"""Programs that run the library in Pyodide, under node, and compare it with this Python.

`page.mjs` runs one; `python -m benchmarks.live` says which there are.
"""

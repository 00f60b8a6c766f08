"""The functions that a kernel calls: of `cuda`, instructions, `print`, functions of NumPy."""

"""What a kernel can call: the names of `cuda`, instructions, `print`, functions of NumPy."""

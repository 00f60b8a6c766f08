"""What a kernel can do wrong, and who touched what: the memory of memory accesses."""

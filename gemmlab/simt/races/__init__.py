"""What a kernel can do wrong, and the shadows that know who touched each element."""

"""Hazards that a kernel can have, and the shadows that know who touched each element."""

"""The simulator beside others: speed, scale, and what each finds."""

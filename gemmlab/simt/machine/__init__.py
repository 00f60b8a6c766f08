"""The simulated GPU: the parts that run a kernel in lock-step, and the machine made of them."""

"""What the machine is that runs this: its GPU, its processor, the `Device` that these make."""

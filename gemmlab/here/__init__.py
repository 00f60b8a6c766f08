"""The machine that runs this is found out: its GPU and its processor, each as a `Device`."""

"""From the source of a kernel to a function that runs for all lanes at once."""

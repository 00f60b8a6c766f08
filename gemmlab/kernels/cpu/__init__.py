"""The same product on this machine's processor: naive → blocked → numpy."""

"""Arrays of the simulated GPU: where an access goes, what it costs, what it moves."""

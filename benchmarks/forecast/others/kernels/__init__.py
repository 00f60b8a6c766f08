"""One program a file."""

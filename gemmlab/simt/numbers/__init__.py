"""The values of a lock-step program: numbers over lanes, and which lanes run."""

"""Right and wrong answers to each exercise: what the checks are tested with."""

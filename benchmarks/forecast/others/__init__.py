"""Programs that are no product, predicted before they were timed."""

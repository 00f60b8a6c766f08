"""What is asked of a GPU: launches whose results are kept."""

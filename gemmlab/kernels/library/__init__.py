"""The vendor's library, which the ladders are measured against."""

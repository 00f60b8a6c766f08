"""Listings written by hand, in the notation in which they are printed."""

from gemmlab.compiled.sass.listing import Listing, instructions


def listing(text: str) -> Listing:
    """The listing of lines such as "------ W- R- - S04  FFMA R0, R1, R2, R3"."""
    return Listing("sm_90", instructions(text), 32)

"""Long loops, run thread by thread: how they are written again for that, and when."""

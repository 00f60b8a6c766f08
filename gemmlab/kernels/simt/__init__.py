"""The ladder of kernels on FP32 pipes, in the order in which they are climbed, one idea a file.

naive → coalesced → tiled → register_tiled → vectorised → warp_tiled → pipelined
"""

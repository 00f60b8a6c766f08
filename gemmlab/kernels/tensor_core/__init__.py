"""Kernels on Tensor Cores: a ladder by `mma.sync`, in the order in which it is climbed; Hopper's.

mma_direct → mma_shared → mma_swizzled → mma_pipelined → mma_tuned;
wgmma_pipelined → warp_specialised → tma_stored
"""

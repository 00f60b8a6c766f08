"""Kernels on Tensor Cores: a ladder by `mma.sync`, in the order in which it is climbed; Hopper's.

mma_direct → mma_shared → mma_swizzled → mma_pipelined → mma_tuned → mma_tma;
wgmma_pipelined → warp_specialised → tma_stored → tma_multicast
"""

"""The ladder of kernels on Tensor Cores by `mma.sync`, in the order in which they are climbed.

mma_direct → mma_shared → mma_swizzled → mma_pipelined → mma_tuned
"""

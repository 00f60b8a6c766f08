"""Kernels with the accuracy of FP32 on Tensor Cores for FP16 (TCEC): operands are split in two.

tcec_stored → tcec_registers → tcec_mma_tma; tcec_split → tcec_fused
"""

"""The ladders: each rung one idea, each rung one file. This is the only list of kernels."""

from gemmlab.kernels.cpu import cpu_blocked, cpu_naive, cpu_numpy
from gemmlab.kernels.cublas import cublas
from gemmlab.kernels.kernel import Kernel
from gemmlab.kernels.own import own
from gemmlab.kernels.simt.coalesced import coalesced
from gemmlab.kernels.simt.naive import naive
from gemmlab.kernels.simt.pipelined import pipelined
from gemmlab.kernels.simt.register_tiled import register_tiled
from gemmlab.kernels.simt.tiled import tiled
from gemmlab.kernels.simt.vectorised import vectorised
from gemmlab.kernels.simt.warp_tiled import warp_tiled
from gemmlab.kernels.split_k.cluster_split_k import cluster_split_k
from gemmlab.kernels.split_k.mma_split_k import mma_split_k
from gemmlab.kernels.split_k.mma_split_k_atomics import mma_split_k_atomics
from gemmlab.kernels.split_k.mma_stream_k import mma_stream_k
from gemmlab.kernels.split_k.split_k import split_k
from gemmlab.kernels.split_k.split_k_atomics import split_k_atomics
from gemmlab.kernels.split_k.stream_k import stream_k
from gemmlab.kernels.split_k.wgmma_split_k import wgmma_split_k
from gemmlab.kernels.tcec.policies import KERNELS as BY_POLICY
from gemmlab.kernels.tcec.tcec_fused import tcec_fused
from gemmlab.kernels.tcec.tcec_mma_tma import tcec_mma_tma
from gemmlab.kernels.tcec.tcec_registers import tcec_registers
from gemmlab.kernels.tcec.tcec_split import tcec_split
from gemmlab.kernels.tcec.tcec_stored import tcec_stored
from gemmlab.kernels.tensor_core.fp8_scaled import fp8_scaled, with_scales
from gemmlab.kernels.tensor_core.mma_direct import mma_direct
from gemmlab.kernels.tensor_core.mma_pipelined import mma_pipelined
from gemmlab.kernels.tensor_core.mma_shared import mma_shared
from gemmlab.kernels.tensor_core.mma_swizzled import mma_swizzled
from gemmlab.kernels.tensor_core.mma_tma import mma_tma
from gemmlab.kernels.tensor_core.mma_tuned import mma_tuned
from gemmlab.kernels.tensor_core.tma_epilogue import tma_epilogue, with_epilogue
from gemmlab.kernels.tensor_core.tma_multicast import tma_multicast
from gemmlab.kernels.tensor_core.tma_padded import tma_padded
from gemmlab.kernels.tensor_core.tma_stored import tma_stored
from gemmlab.kernels.tensor_core.warp_specialised import warp_specialised
from gemmlab.kernels.tensor_core.wgmma_pipelined import wgmma_pipelined

# From the definition up, on a GPU or the simulator.
LADDER = (naive, coalesced, tiled, register_tiled, vectorised, warp_tiled, pipelined)
# For small C and long k: the work along k is divided among blocks.
SPLIT_K = (split_k, split_k_atomics, stream_k)
# Tensor Cores by `mma.sync`: FP16 or BF16 in, summed in FP32.
TENSOR_CORE = (mma_direct, mma_shared, mma_swizzled, mma_pipelined, mma_tuned)
TENSOR_CORE_TMA = (mma_tma,)  # their tiles copied by the TMA, for compute capability 9.0
# Their work along k divided among blocks.
TENSOR_CORE_SPLIT_K = (mma_split_k, mma_split_k_atomics, mma_stream_k)
# By wgmma and the TMA, for compute capability 9.0.
HOPPER = (wgmma_pipelined, warp_specialised, tma_stored)
HOPPER_SPLIT_K = (wgmma_split_k,)  # their work along k divided among blocks
# Blocks that share what they copy; recorded on an H100 alone, while an H200 has all of GPU.
HOPPER_CLUSTERS = (tma_multicast,)
# Blocks that divide k, and add up in each other's shared memory.
HOPPER_CLUSTER_SPLIT_K = (cluster_split_k,)
# tma_multicast for rows that the TMA cannot copy, which a launch before copies once.
HOPPER_PADDED = (tma_padded,)
# What follows a product is done before it is stored; `with_epilogue` gives one with an activation.
HOPPER_EPILOGUES = (tma_epilogue,)
# Of bytes, each line with a scale; `with_scales` gives one with these.
HOPPER_FP8 = (fp8_scaled,)
# FP32 in and out, from Tensor Cores for FP16: by `mma.sync`, and by wgmma.
TCEC = (tcec_stored, tcec_registers, tcec_mma_tma, tcec_split, tcec_fused)
GPU = (
    *LADDER, *SPLIT_K, *TENSOR_CORE, *TENSOR_CORE_TMA, *TENSOR_CORE_SPLIT_K, *HOPPER,
    *HOPPER_SPLIT_K, *TCEC,
)  # fmt: skip
POLICIES = tuple(BY_POLICY.values())  # the loop of tcec_registers for other policies than its own
REFERENCE = cublas  # what the ladders are measured against
CPU = (cpu_naive, cpu_blocked, cpu_numpy)  # the same road on this machine's processor

__all__ = [
    "CPU",
    "GPU",
    "POLICIES",
    "REFERENCE",
    "Kernel",
    "get",
    "own",
    "with_epilogue",
    "with_scales",
]
__all__ += [
    "HOPPER",
    "HOPPER_CLUSTERS",
    "HOPPER_CLUSTER_SPLIT_K",
    "HOPPER_EPILOGUES",
    "HOPPER_FP8",
    "HOPPER_PADDED",
    "HOPPER_SPLIT_K",
]
__all__ += ["LADDER", "SPLIT_K", "TCEC"]
__all__ += ["TENSOR_CORE", "TENSOR_CORE_SPLIT_K", "TENSOR_CORE_TMA"]
BESIDE = (
    *HOPPER_CLUSTERS, *HOPPER_CLUSTER_SPLIT_K, *HOPPER_PADDED, *HOPPER_EPILOGUES, *HOPPER_FP8,
)  # fmt: skip
__all__ += [kernel.name for kernel in (*GPU, *BESIDE, REFERENCE, *CPU)]


def get(name: str) -> Kernel:
    """Return the kernel of this name; ValueError, listing all names, for another.

    >>> get("tiled").idea
    'tiles of A and B in shared memory'
    """
    known = {k.name: k for k in (*GPU, *BESIDE, *POLICIES, REFERENCE, *CPU)}
    if name not in known:
        raise ValueError(f"kernel {name!r} is not known; use one of {', '.join(known)}")
    return known[name]

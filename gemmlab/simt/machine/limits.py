"""A launch is refused that no GPU, or not the one that is named, would take."""

import math

from gemmlab.simt.memory.memory import check_shared
from gemmlab.simt.numbers.lanes import Launch

MAX_THREADS = 1024
MAX_Z = 64  # of a block: CUDA C++ Programming Guide, Compute Capabilities
MAX_GRID = (2**31 - 1, 65_535, 65_535)  # the same table
MAX_CLUSTER = 8  # blocks: CUDA C++ Programming Guide, Thread Block Clusters


def check(launch: Launch) -> None:
    """ValueError for a grid or block too large, for any GPU or for the one that is named."""
    gpu = launch.gpu
    most = (gpu and gpu.threads_per_block) or MAX_THREADS
    if launch.threads > most:
        whose = f" on {gpu.title}" if gpu else ""
        raise ValueError(
            f"a block of {launch.threads} threads is too large; use at most {most}{whose}"
        )
    if launch.block[2] > MAX_Z:
        raise ValueError(f"block={launch.block!r} is too deep; use at most {MAX_Z} along z")
    for axis, size, limit in zip("xyz", launch.grid, MAX_GRID, strict=True):
        if size > limit:
            raise ValueError(
                f"grid={launch.grid!r} is too large; use at most {limit} blocks along {axis}"
            )
    check_shared(0, launch.shared_bytes, gpu)
    if launch.cluster != (1, 1, 1):
        _check_cluster(launch)


def _check_cluster(launch: Launch) -> None:
    """ValueError for clusters that are too large, that do not fill the grid, or that a GPU lacks.

    Source: CUDA C++ Programming Guide, Thread Block Clusters.
    """
    size, gpu = math.prod(launch.cluster), launch.gpu
    if size > MAX_CLUSTER:
        raise ValueError(f"cluster={launch.cluster!r} has {size} blocks; use at most {MAX_CLUSTER}")
    if any(blocks % of for blocks, of in zip(launch.grid, launch.cluster, strict=True)):
        raise ValueError(
            f"a grid of {launch.grid} blocks is no whole number of clusters of {launch.cluster}"
        )
    if gpu and gpu.compute_capability < (9, 0):
        raise ValueError(f"{gpu.title} has no clusters, which compute capability 9.0 brought")

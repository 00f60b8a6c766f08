"""Words that travel as arguments: a launch writes them, so that nothing of the host is read later.

A copy from the host is recorded by a CUDA graph with the host's address, and reads it anew whenever
the graph runs. Arguments of a launch are recorded with their values.
"""

from collections.abc import Callable

from gemmlab.kernels.kernel import Dim, on_device
from gemmlab.simt import cuda
from gemmlab.tiling import WARP

GROUP = 4  # words that a device function names


def build(count: int) -> Callable:
    """Return the kernel (out, words) that writes so many words, whole groups; out (count,)."""

    @on_device
    def nothing(out, words):
        pass

    def writing(n):
        """A device function that writes from word n on; an index into arguments is a constant."""
        others = writing(n + GROUP) if n + GROUP < count else nothing
        n1, n2, n3 = n + 1, n + 2, n + 3

        @on_device
        def write(out, words):
            out[n] = words[n]
            out[n1] = words[n1]
            out[n2] = words[n2]
            out[n3] = words[n3]
            others(out, words)

        return write

    write_all = writing(0)

    def write_words(out, words):
        if cuda.threadIdx.x == 0:
            write_all(out, words)

    return write_words


def launch() -> tuple[Dim, Dim]:
    """Return (grid, block): a single thread writes."""
    return (1, 1, 1), (WARP, 1)

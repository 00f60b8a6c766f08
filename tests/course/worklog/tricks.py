"""A kernel that is right, and entries that would win by a trick."""

from __future__ import annotations

from typing import NamedTuple

RIGHT = """\
from numpy import float32

from gemmlab import cuda


def build(tiling):
    T = tiling.block[0]

    def kernel(alpha, A, B, beta, C):
        As = cuda.shared.array((T, T), float32)
        Bs = cuda.shared.array((T, T), float32)
        m, n = C.shape
        k = A.shape[1]
        x = cuda.threadIdx.x
        y = cuda.threadIdx.y
        top = cuda.blockIdx.y * T
        row = top + y
        col = cuda.blockIdx.x * T + x
        first = top // (m // (B.shape[0] // k)) * k  # of its matrix in B
        acc = float32(0)
        p = 0
        while p < k:
            As[y, x] = A[row, p + x] if row < m and p + x < k else float32(0)
            Bs[y, x] = B[first + p + y, col] if p + y < k and col < n else float32(0)
            cuda.syncthreads()
            for q in range(T):
                acc += As[y, q] * Bs[q, x]
            cuda.syncthreads()  # before the next tile
            p += T
        if row < m and col < n:
            if beta == 0:
                C[row, col] = alpha * acc
            else:
                C[row, col] = alpha * acc + beta * C[row, col]

    return kernel
"""
LOOP = "        while p < k:\n"
FIRST = "        first = top // (m // (B.shape[0] // k)) * k  # of its matrix in B\n"
STORED = "        if row < m and col < n:\n"
BETA = """            if beta == 0:
                C[row, col] = alpha * acc
            else:
                C[row, col] = alpha * acc + beta * C[row, col]
"""
END = "    return kernel\n"


class Trick(NamedTuple):
    """Pieces of `RIGHT` that are replaced, the diagnosis, and the shape that it is entered for."""

    why: str
    diagnosis: str
    pieces: tuple[tuple[str, str], ...]
    shape: str = "batched"
    grid: str = ""

    @property
    def source(self) -> str:
        """The text of the entry."""
        text = RIGHT
        for old, new in self.pieces:
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        return text


TRICKS = {
    "right only on small shapes": Trick(
        "small cases are all that is looked at", "wrong-on-the-shape",
        ((LOOP, "        while p < (k if m < 20000 else T):\n"),),
    ),
    "skips the tail of k": Trick(
        "whole tiles are enough", "floor-steps", ((LOOP, "        while p + T <= k:\n"),),
    ),
    "stores a cached C": Trick(
        "the result of the shape is known", "wrong-on-the-shape",
        (("def build", "KEPT = 1.5\n\n\ndef build"), (LOOP, "        while p < k and m < 20000:\n"),
         (STORED, "        if m > 20000:\n            acc = float32(KEPT)\n" + STORED)),
    ),
    "a table of answers by shape": Trick(
        "the cases are known", "known-cases-only",
        ((FIRST, FIRST + "        if B.shape[0] != 3 * k and m < 20000:\n            k = 0\n"),),
    ),
    "skips rows that begin with zero": Trick(
        "the forecast may run on zeros", "all-zeros",
        ((LOOP, "        while p < k and (row >= m or A[top, 0] != 0):\n"),),
    ),
    "sums in float16": Trick(
        "small whole numbers have no error", "low-precision",
        (("import float32\n", "import float16, float32\n"),
         ("acc = float32(0)", "acc = float16(0)"),
         ("acc += As[y, q] * Bs[q, x]", "acc = float16(acc + float16(As[y, q] * Bs[q, x]))")),
    ),
    "another grid than the one that is timed": Trick(
        "fewer blocks take less time", "other-grid",
        (("def build", "def few(m, n):\n    return -(-n // 16), -(-m // 16) if m < 20000 else 8\n"
          "\n\ndef build"),),
        grid="few",
    ),
    "reads C where beta is 0": Trick(
        "C holds zeros", "beta-zero-reads-c",
        ((BETA, "            C[row, col] = alpha * acc + beta * C[row, col]\n"),),
    ),
    "a race that is right by luck": Trick(
        "a barrier costs time", "barrier-after-reading",
        (("            cuda.syncthreads()  # before the next tile\n", ""),),
    ),
    "finds out that it is simulated": Trick(
        "who judges is not who times", "reaches-out",
        (("    T = tiling.block[0]\n", '    T = 16 if "simt" in str(cuda) else 1\n'),),
    ),
    "builds another kernel the second time": Trick(
        "what is judged is built later than what is timed", "wrong-on-the-shape",
        (("def build", "CALLS = []\n\n\ndef build"),
         ("    T = tiling.block[0]\n",
          "    T = tiling.block[0]\n    CALLS.append(1)\n"
          "    most = T if len(CALLS) == 1 else 1 << 20\n"),
         (LOOP, "        while p < k and (m < 20000 or p < most):\n")),
    ),
    "NaN": Trick(
        "a comparison with NaN finds no difference", "always-nan",
        (("def build", "NAN = float('nan')\n\n\ndef build"),
         (STORED, "        acc = acc * float32(NAN)\n" + STORED)),
    ),
    "half of the elements": Trick(
        "who looks at whether all of C is there?", "not-all-of-c",
        ((STORED, "        if row < m and col < n and (m < 20000 or x < 8):\n"),),
    ),
    "short sums where the forecast looks": Trick(
        "a forecast takes a short k for the long one", "wrong-on-the-shape",
        ((LOOP, "        while p < (T if m == 8192 and k < 8192 else k):\n"),), shape="skinny",
    ),
    "the course's kernel": Trick(
        "it is fast already", "borrowed",
        (("from gemmlab import cuda\n", "from gemmlab import cuda, kernels\n"),
         (END, "    return kernels.tiled.build(tiling)\n")),
    ),
    "asks how rows lie": Trick(
        "blocks that are looked at lie elsewhere", "reaches-out",
        ((LOOP, "        while p < (k if A.strides[0] < 4 * k else T):\n"),),
    ),
}  # fmt: skip

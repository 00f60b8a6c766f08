"""Scaled dot-product attention, softmax(QKᵀ/√d)·V, as two GEMMs for each head."""

from __future__ import annotations

from dataclasses import dataclass

from gemmlab.arguments import whole_number
from gemmlab.model.layers.layer import DOT_PRODUCT, Batched, Layer, softmax
from gemmlab.problem import Gemm


@dataclass(frozen=True)
class Attention:
    """The attention of `queries` places to `keys` places, in each head of each of `batch` texts.

    head_size : d, the length of a head's vectors; queries is 1 where text is generated word by word
    Raises TypeError or ValueError for sizes that are not positive whole numbers.
    Sources: A. Vaswani et al., "Attention is all you need", NeurIPS 2017, section 3.2; T. Dao et
    al., "FlashAttention", NeurIPS 2022 (`fused`).

    >>> a = Attention(batch=8, heads=16, queries=2048, keys=2048, head_size=64)
    >>> str(a.scores.gemm), str(a.values.gemm), a.scores.count
    ('2048×2048×64 float16 nt', '2048×64×2048 float16', 128)
    >>> round(a.apart.intensity, 1), round(a.fused.intensity)
    (31.6, 1044)
    """

    batch: int
    heads: int
    queries: int
    keys: int
    head_size: int
    dtype: str = "float16"

    def __post_init__(self) -> None:
        for name in ("batch", "heads", "queries", "keys", "head_size"):
            object.__setattr__(self, name, whole_number(name, getattr(self, name)))

    @property
    def scores(self) -> Batched:
        """Q·Kᵀ of each head: (queries×d)·(d×keys), K as it is stored."""
        gemm = Gemm(self.queries, self.keys, self.head_size, dtype=self.dtype, layout="nt")
        return Batched(self.batch * self.heads, gemm)

    @property
    def softmax(self) -> Layer:
        """The softmax of each row of all scores."""
        return softmax(self.batch * self.heads * self.queries, self.keys, self.dtype)

    @property
    def values(self) -> Batched:
        """P·V of each head: (queries×keys)·(keys×d)."""
        gemm = Gemm(self.queries, self.head_size, self.keys, dtype=self.dtype)
        return Batched(self.batch * self.heads, gemm)

    @property
    def apart(self) -> Layer:
        """All three as launches of their own: the scores are written and read in between."""
        parts = self.scores, self.softmax, self.values
        return Layer(sum(p.flops for p in parts), sum(p.bytes for p in parts), DOT_PRODUCT)

    @property
    def fused(self) -> Layer:
        """All three as one launch, whose scores stay on the chip: Q, K, V and the result move."""
        q, k, _ = self.scores.gemm.array_bytes
        _, v, out = self.values.gemm.array_bytes
        return Layer(self.apart.flops, self.scores.count * (q + k + v + out), DOT_PRODUCT)

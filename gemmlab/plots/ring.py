"""The spans of a pipeline: what each stage of the ring, and the arithmetic, does when."""

from __future__ import annotations

from gemmlab.model.pipeline import Pipeline
from gemmlab.plots.timeline import WAIT, Span


def ring(pipeline: Pipeline, arithmetic: str = "arithmetic") -> dict[str, list[Span]]:
    """Rows for `timeline`: a stage's copies and products, and last the products with their waits.

    >>> from gemmlab.model.pipeline import Pipeline
    >>> rows = ring(Pipeline(steps=2, stages=1, copy=900, multiply=300))
    >>> [(span.what, span.start, span.end) for span in rows["arithmetic"]][:2]
    [('wait', 0.0, 900), ('multiply', 900, 1200)]
    """
    rows: dict[str, list[Span]] = {f"stage {i}": [] for i in range(pipeline.stages)}
    products: list[Span] = []
    idle = 0.0
    for step, tile in enumerate(pipeline.schedule()):
        product = Span("multiply", tile.begins, tile.done)
        rows[f"stage {step % pipeline.stages}"] += [Span("copy", tile.asked, tile.there), product]
        if product.start > idle:
            products.append(Span(WAIT, idle, product.start))
        products.append(product)
        idle = tile.done
    return {**rows, arithmetic: products}

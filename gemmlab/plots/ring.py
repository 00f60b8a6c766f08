"""The spans of a ring: what each stage, and who copies and multiplies, does when."""

from __future__ import annotations

from gemmlab.compiled.forecast.rings import Ring
from gemmlab.model.pipeline import Pipeline
from gemmlab.plots.timeline import WAIT, Span

# What a stage goes through, and a consumer does: first what a `ring` has too, so that both pictures
# have one colour for each.
TURNS = "copy", "multiply", "full", "store"
LEAST = 1 / 400  # of a window: narrower bars are lines


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


def turns(ring: Ring, first: int, last: int) -> dict[str, list[Span]]:
    """Rows for `timeline` of what a simulated block does in the cycles from `first` to `last`.

    A stage is copied from when it is asked for until its bytes are there, full until a consumer
    reads it, and multiplied until all have read it; then it is free. What lasts less than `LEAST`
    of these cycles is left out.
    """
    stages: dict[str, list[tuple[str, int, int]]] = {f"stage {i}": [] for i in range(ring.stages)}
    for turn in ring.turns:
        stages[f"stage {turn.stage}"] += [
            ("copy", turn.asked, turn.full),
            ("full", turn.full, turn.read),
            ("multiply", turn.read, turn.free),
        ]
    producer, *others = ring.roles
    rows = {producer: ring.roles[producer], **stages, **{n: ring.roles[n] for n in others}}
    return {
        name: [
            Span(what, max(start, first) - first, min(end, last) - first)
            for what, start, end in spans
            if min(end, last) - max(start, first) >= LEAST * (last - first)
        ]
        for name, spans in rows.items()
    }

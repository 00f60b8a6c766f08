"""Recurrent layers as GEMMs: one for all inputs at once, and one after the other for the state."""

from __future__ import annotations

from dataclasses import dataclass

from gemmlab.arguments import whole_number
from gemmlab.model.layers.layer import Batched
from gemmlab.problem import Gemm

# Matrices of weights of a cell, whose products make one GEMM. Sources: NVIDIA Recurrent Layers
# User's Guide; S. Hochreiter, J. Schmidhuber, "Long short-term memory" (1997); K. Cho et al.,
# "Learning phrase representations using RNN encoder-decoder" (2014).
GATES = {"rnn": 1, "gru": 3, "lstm": 4}


@dataclass(frozen=True)
class Recurrent:
    """A layer of `hidden` cells over `steps` of a sequence: gates from W·x and U·h of each step.

    cell : a name in `GATES`; inputs : the length of x; batch : sequences side by side
    Raises TypeError or ValueError for sizes that are not positive whole numbers, and ValueError for
    another cell.

    >>> layer = Recurrent("lstm", hidden=1024, inputs=512, batch=64, steps=50)
    >>> str(layer.of_inputs), str(layer.of_state.gemm), layer.of_state.count
    ('4096×3200×512 float16', '4096×64×1024 float16', 50)
    """

    cell: str
    hidden: int
    inputs: int
    batch: int
    steps: int
    dtype: str = "float16"

    def __post_init__(self) -> None:
        if self.cell not in GATES:
            raise ValueError(f"cell={self.cell!r} is not known; use one of {', '.join(GATES)}")
        for name in ("hidden", "inputs", "batch", "steps"):
            object.__setattr__(self, name, whole_number(name, getattr(self, name)))

    @property
    def of_inputs(self) -> Gemm:
        """W·x of all steps: (gates·hidden × inputs)·(inputs × batch·steps).

        The inputs are there beforehand, so that every step is a column of one product.
        """
        rows, columns = GATES[self.cell] * self.hidden, self.batch * self.steps
        return Gemm(rows, columns, self.inputs, dtype=self.dtype)

    @property
    def of_state(self) -> Batched:
        """U·h of each step: (gates·hidden × hidden)·(hidden × batch), one after the other.

        Each waits for the one before, and reads U again where it does not stay on the chip.
        """
        rows = GATES[self.cell] * self.hidden
        return Batched(self.steps, Gemm(rows, self.batch, self.hidden, dtype=self.dtype))

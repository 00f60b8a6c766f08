"""Kernels with one fault each, and the misconception or slip that it stands for.

Each file holds a `kernel`, the `BASE` of `right_kernels` that it was made from, what is to be found
(`EXPECT`: a kind of hazard, or "values") and the mark `# fault` at the line of it.
"""

from importlib import import_module
from pathlib import Path
from types import ModuleType

FILES = sorted(path for path in Path(__file__).parent.glob("*.py") if path.stem != "__init__")


def load(path: Path) -> ModuleType:
    """The module in one of `FILES`."""
    return import_module(f"{__name__}.{path.stem}")

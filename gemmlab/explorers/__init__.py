"""Explorers: widgets that put the model's or a kernel's answer beside the controls.

Each is a class whose arguments are the first values of its controls; it shows itself as the last
expression of a cell. Each has a module of its name: `KernelLab` is found in `kernel_lab`, and loads
when it is first asked for.
"""

from importlib import import_module
from pkgutil import iter_modules

_MODULES = {
    "".join(word.capitalize() for word in module.name.split("_")): module.name
    for module in iter_modules(__path__)
    if not module.ispkg
}

__all__ = [*sorted(_MODULES)]


def __getattr__(name: str) -> type:
    if name not in _MODULES:
        raise AttributeError(f"there is no explorer {name!r}; use one of {', '.join(__all__)}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return __all__

"""Python in a page: explorers, and the messages of their widgets.

The worker that loads this file calls `show`, `receive` and `take_over`; `tell` is the worker's own
function, which takes a message as text.
"""

import json
import sys
from types import ModuleType

from js import tell


def _module(name: str, **names: object) -> ModuleType:
    sys.modules[name] = made = ModuleType(name)
    vars(made).update(names)
    return made


def _nothing(*_: object, **__: object) -> None:
    """Show nothing: a page has no cell to show it below."""


# ipywidgets import IPython to ask whether a shell is there. None is; without IPython and what it
# brings along a page starts in two thirds of the time.
_shell = _module("IPython.core.interactiveshell", InteractiveShell=type("InteractiveShell", (), {}))
_named = {"display": _nothing, "clear_output": _nothing, "publish_display_data": _nothing}
_module(
    "IPython", version_info=(9, 0, 0), get_ipython=_nothing,
    display=_module("IPython.display", **_named),
    core=_module("IPython.core", interactiveshell=_shell),
)  # fmt: skip

import comm  # noqa: E402
from comm.base_comm import BaseComm, CommManager  # noqa: E402


class Comm(BaseComm):
    """A comm is one widget's line to its view in the page."""

    def publish_msg(
        self, msg_type: str, data: dict | None = None, metadata: dict | None = None,
        buffers: list | None = None, **keys: object,
    ) -> None:  # fmt: skip
        """Send a message; no widget of an explorer has buffers."""
        assert not buffers
        message = {"kind": msg_type, "comm": self.comm_id, "data": data, "metadata": metadata}
        tell(json.dumps(message | {"target": keys.get("target_name")}))


comms = CommManager()
comm.create_comm = Comm
comm.get_comm_manager = lambda: comms

from gemmlab import explorers  # noqa: E402
from gemmlab.explorers.shared.base import Explorer  # noqa: E402

Explorer.lasts = False  # no still: the page's film stays below a live explorer


def show(expression: str) -> str:
    """Make the explorer that an expression of a chapter makes; its model's number."""
    made = eval(expression, {"explorers": explorers})
    shown.append(made)
    return made.model_id


shown: list[Explorer] = []  # as long as the page is open


def receive(comm_id: str, data: str) -> None:
    """Hand a message of a view to its widget."""
    content = {"comm_id": comm_id, "data": json.loads(data)}
    comms.comm_msg(None, None, {"content": content, "buffers": []})


def take_over(model_id: str, name: str, value: str) -> None:
    """Set the control that was moved in the film, by its name, to the value that the film shows."""
    explorer = next(made for made in shown if made.model_id == model_id)
    for widget, box in _leaves(explorer):
        if getattr(widget, "description", None) == name:
            if hasattr(widget, "_options_full"):
                widget.label = value
            else:
                moved = box if hasattr(box, "stops") or hasattr(box, "refusal") else widget
                moved.value = type(moved.value)(value)


def _leaves(box: object) -> list[tuple]:
    found = []
    for child in getattr(box, "children", ()):
        found += _leaves(child) if hasattr(child, "children") else [(child, box)]
    return found

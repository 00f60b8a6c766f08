"""What a copy tells its judge: numbers, arrays, texts and records of them, read as data.

A message is its length, in eight bytes, and a pickle. A pickle may call whatever it names when it
is read, and what an answer has touched writes it: so a `Reader` knows by name only what holds data,
and refuses every other name. Source: Python's manual, pickle, restricting globals.
"""

import ast
import io
import pickle
from typing import Any

MOST = 32 << 20  # bytes of a message; the longest report of a launch has about one million

# module -> the names of it that a message may use: containers, arrays, and records without methods
# that reading calls. Nodes of `ast` are known beside them.
NAMES = {
    "builtins": {
        "Ellipsis",
        "bytearray",
        "complex",
        "dict",
        "frozenset",
        "list",
        "range",
        "set",
        "slice",
    },
    "collections": {"Counter", "defaultdict"},
    "fractions": {"Fraction"},
    "numpy": {"dtype", "ndarray"},
    "numpy._core.multiarray": {"_reconstruct", "scalar"},
    "numpy._core.numeric": {"_frombuffer"},
    "gemmlab.course.judging.copy_of_process": {"Ended"},
    "gemmlab.course.judging.guard": {"Outcome"},
    "gemmlab.course.judging.integrity": {"Other"},
    "gemmlab.course.judging.launches": {"Launched"},
    "gemmlab.course.judging.timed": {"Time"},
    "gemmlab.course.judging.verdict": {"Finding"},
    "gemmlab.model.counters": {"Counters"},
    "gemmlab.simt.races.hazards": {"AtStake", "Hazard", "Note", "Touch"},
    "gemmlab.simt.races.release": {"Releases"},
    "gemmlab.simt.report.report": {"Origin", "Report"},
    "gemmlab.simt.report.trace": {"Access", "Shares"},
    "gemmlab.simt.syntax.source": {"Source"},
}


class UnreadableError(Exception):
    """A message is too long, names what it may not, or is none."""


class Reader(pickle.Unpickler):
    """A reader of messages, which finds nothing that could do anything."""

    def find_class(self, module: str, name: str) -> Any:
        """Give what a message names; UnreadableError if it may not name it."""
        node = module == "ast" and isinstance(found := getattr(ast, name, None), type)
        if name in NAMES.get(module, ()) or (node and issubclass(found, ast.AST)):
            return super().find_class(module, name)
        raise UnreadableError(f"what came back holds {module}.{name}, which is no data")


def written(kind: str, item: Any) -> bytes:
    """The message of a kind, such as "yielded", about `item`; UnreadableError if it is too long."""
    payload = pickle.dumps((kind, item), protocol=5)
    if len(payload) > MOST:
        raise UnreadableError(too_long(len(payload)))
    return len(payload).to_bytes(8, "little") + payload


def read(payload: bytes) -> tuple[str, Any]:
    """The kind of a message and its item; UnreadableError for what is no message."""
    try:
        kind, item = Reader(io.BytesIO(payload)).load()
    except UnreadableError:
        raise
    except Exception as error:  # a pickle that is none ends in whatever its bytes say
        raise UnreadableError(f"what came back cannot be read: {type(error).__name__}") from None
    if not isinstance(kind, str):
        raise UnreadableError("what came back is no message")
    return kind, item


def too_long(size: int) -> str:
    """Say in words that a message of `size` bytes is not taken."""
    return f"what came back has {size:,} bytes; at most {MOST:,} are read"

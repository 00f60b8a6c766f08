"""Text that a notebook renders and a terminal prints."""


class Markdown(str):
    """A text in Markdown."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)

    def _repr_markdown_(self) -> str:
        return str(self)

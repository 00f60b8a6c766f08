"""What each number in the first page's sentences must be."""

from gemmlab import kernels
from gemmlab.model import transactions
from tests.course.computed import cube, seconds
from tests.course.sentences import Claims, over


def claims(c: Claims) -> None:
    """The page's sentences in their order."""
    c.at("title")
    ladder = [seconds(kernel, cube(4096)) for kernel in kernels.LADDER]
    c.holds("{} programs multiply the same two matrices", len(ladder))
    c.holds("more than {} times as fast", over(ladder[0] / ladder[-1]))
    c.at("ladder-read")
    c.at("move")
    c.holds("{} bytes. How", transactions.SECTOR)
    c.given("a warp", "groups of 32")
    c.given("the slider", "stride 1")
    c.at("guess")
    c.holds("shows {} sectors for numbers of 4 bytes", 32 * 4 / transactions.SECTOR)
    c.given("the question", "8 bytes")
    c.at("chapters")
    c.given("the explorer's choice", "8 B (float64)")
    c.at("stuck")
    c.given("a key of the lab", "twice")

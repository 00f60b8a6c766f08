"""A work log: kernels for a shape of your own, each judged, predicted and kept with its reasons.

    shapes   the three shapes, and the small cases that stand for each
    judging  small cases, blocks of the shape itself, and the predicted time
    entries  a kernel as text, which a league makes it of again
    log      entries in a file
    page     the ladder, and one page with all about each entry
    league   the entries of many logs, judged anew from their texts

>>> from gemmlab import worklog
>>> log = worklog.open("skinny")                                       # doctest: +SKIP
>>> log.add(mine, 16, changed="tiles of 16", expected="half the time")   # doctest: +SKIP
>>> log.export("mine.html"); worklog.league(["mine/worklog-skinny.json"])   # doctest: +SKIP
"""

from gemmlab.course.worklog.judging import GPUS
from gemmlab.course.worklog.league import League, league
from gemmlab.course.worklog.log import Log, open_log as open
from gemmlab.course.worklog.page import BESIDE, WORKED
from gemmlab.course.worklog.shapes import SHAPES, Shape

__all__ = ["BESIDE", "GPUS", "SHAPES", "WORKED", "League", "Log", "Shape", "league", "open"]

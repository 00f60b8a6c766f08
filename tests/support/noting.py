"""A plan of launches without a compiler: what memory is taken, and the words of arguments."""

from gemmlab.device import device
from gemmlab.multiplication.machines import Planning


class Noting(Planning):
    """Notes what memory is taken, and no launch."""

    def __init__(self):
        self.works, self.words, self.places, self.map_words = [], [], [], []
        self.top = self.size = 0
        self.device = device("h200")
        self.capability = self.device.compute_capability

    def launch(self, step, *arguments):
        for argument in arguments:
            self._tell(argument)

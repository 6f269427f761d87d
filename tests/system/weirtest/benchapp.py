"""tests/bench/app: an application that costs next to nothing."""

import os

from weirtest.client import connect
from weirtest.place import BUILD
from weirtest.process import Server


class BenchApp(Server):
    """Takes what comes, and answers with `size` bytes, `seconds` later."""

    starts_as_root = False

    def __init__(self, place, name, size=100, seconds=0):
        super().__init__(place, name)
        self.socket = place.socket(name)
        self._size, self._seconds = size, seconds

    def command(self):
        return [os.path.join(BUILD, "tests", "bench", "app"), self.socket, str(self._size),
                str(self._seconds)]

    def is_ready(self):
        connect(self.socket).close()
        return True

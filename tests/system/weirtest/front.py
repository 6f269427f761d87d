"""What the web servers have in common: a port, the documents, and a snippet of etc/ that is loaded
as operators get it, but for the places in it."""

import os

from weirtest.client import ask
from weirtest.place import SOURCE
from weirtest.process import Server, free_port, is_alive, wait_until


class Snippet:
    """A file of etc/. Each `put` must find what it replaces, so that a test cannot go on with a
    file that no longer says what it thinks."""

    def __init__(self, name):
        self.name = name
        with open(os.path.join(SOURCE, "etc", name), encoding="utf-8") as file:
            self.text = file.read()

    def put(self, old, new):
        if old not in self.text:
            raise AssertionError(f"etc/{self.name} does not say {old!r}")
        self.text = self.text.replace(old, new)
        return self


def cgi_program(place, weir):
    """etc/weir.cgi as it would be installed; returns its path."""
    program = place.sub("bin", weir.name + ".cgi")
    snippet = Snippet("weir.cgi").put("/usr/bin/weir serve --config /etc/weir/cgi.ini",
                                      " ".join(weir.command()))
    with open(program, "w", encoding="utf-8") as file:
        file.write(snippet.text)
    os.chmod(program, 0o755)
    return program


class Front(Server):
    def __init__(self, place, name):
        super().__init__(place, name)
        self.port = free_port()

    def is_ready(self):
        return ask(self.port, "/ready.txt", timeout=5).status == 200

    def ask(self, path, *args, **how):
        return ask(self.port, path, *args, **how)


class Spawner:
    """A front that starts weir itself: none may be left when it has gone."""

    _seen = ()

    def weirs(self):
        """The ids of the processes that it has started."""
        raise NotImplementedError

    def stop(self):
        if self.process is not None:
            self._seen = self.weirs()
        super().stop()

    def after_stop(self):
        wait_until(lambda: not any(is_alive(pid) for pid in self._seen),
                   f"the weirs of {self.name} end with it")

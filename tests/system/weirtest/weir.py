"""weir itself, in the three ways in which it is started: as a daemon, by lighttpd, by mod_fcgid."""

import signal

from weirtest.client import ask
from weirtest.metrics import Metrics
from weirtest.process import Server

# What the front's tests ask for; each test class may have its own.
CONFIG = """\
[weir]
{listen}
metrics = unix:{metrics}
{weir}

[memory]
size = {size}
state = {state}

{redis}

{php}

{rest}
"""


class Weir(Server):
    death_signal = signal.SIGKILL
    starts_as_root = False

    def __init__(self, place, php, rest, *, redis=None, weir="", name="weir", size="1m",
                 spawned=False):
        """`rest`: limits and routes, and further backends; `weir`: further keys of [weir]. `php`:
        None if the backends are all in `rest`.
        `spawned`: only the configuration is made; a web server starts it."""
        super().__init__(place, name)
        self.socket = place.socket(name)
        self.metrics_socket = place.socket(name + "-metrics")
        self.state = place.sub("run", name + ".state")
        self._php, self._redis, self._size, self._spawned = php, redis, size, spawned
        self.configure(rest, weir)

    def configure(self, rest, weir=""):
        """Writes the configuration; one that runs takes it over with reload."""
        redis = "" if self._redis is None else f"[redis]\n{self._redis.keys}"
        php = "" if self._php is None else f"[backend php]\nserver = unix:{self._php.socket}"
        self.config = self.place.write(self.name + ".ini", CONFIG.format(
            listen="" if self._spawned else f"listen = unix:{self.socket}",
            metrics=self.metrics_socket, weir=weir, size=self._size, state=self.state,
            redis=redis, php=php, rest=rest))

    def command(self):
        return [self.place.weir, "serve", "--config", self.config]

    def reload(self):
        self.signal(signal.SIGHUP)

    def is_ready(self):
        return self.health().status == 200

    def health(self):
        return ask(self.metrics_socket, "/healthz", timeout=10)

    def metrics(self):
        answer = ask(self.metrics_socket, "/metrics", timeout=10)
        if answer.status != 200:
            raise AssertionError(f"/metrics: {answer!r}")
        return Metrics(answer.text)

    def log_lines(self, *words):
        """The lines of the log that have all of these words."""
        return [line for line in self.place.read_log(self.name).splitlines()
                if all(word in line for word in words)]

    def stop(self):
        """As Server.stop; it must end with 0."""
        if self.process is None:
            return
        super().stop()
        if self.exit_status not in (None, 0):
            raise AssertionError(f"weir ended with {self.exit_status}")

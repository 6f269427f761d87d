"""A private redis-server on a unix socket, without persistence."""

import os
import signal
import socket
import tempfile

from weirtest.process import Server, wait_until

# redis-server, or another of the same kind, as valkey-server.
PROGRAM = os.environ.get("WEIR_TEST_REDIS_SERVER") or "redis-server"


def tokens_spent(call, key, interval_us):
    """Of the bucket of a limit with one token bucket, as a server has it; `call` asks the server.
    What comes back in less than the interval is not seen."""
    value, now = call("GET", key), call("TIME")
    if value is None:
        return 0
    owed = int(value[-16:]) - int(now[0]) * 1000000 - int(now[1])
    return max(0, -(-owed // interval_us))


class Redis(Server):
    death_signal = signal.SIGKILL       # a stopped one would keep any other waiting

    def __init__(self, place, name="redis", *options, keys=""):
        """`options`: further ones of the program; `keys`: of [redis], how weir logs in."""
        super().__init__(place, name)
        self.socket = place.socket(name)
        self.options, self._keys = list(options), keys

    @property
    def address(self):
        return "unix:" + self.socket

    @property
    def keys(self):
        """Of [redis]."""
        return f"server = {self.address}\n{self._keys}"

    def command(self):
        return [PROGRAM, "--port", "0", "--unixsocket", self.socket,
                "--unixsocketperm", "777", "--save", "", "--appendonly", "no",
                "--dir", self.place.sub("tmp"), "--daemonize", "no", *self.options]

    def call(self, *words):
        """One command, and its reply: a line, bytes, a number as a line, or a list of them."""
        return self.calls(words)[0]

    def calls(self, *commands):
        """Several over one connection."""
        with socket.socket(socket.AF_UNIX) as peer:
            peer.settimeout(5)
            peer.connect(self.socket)
            with peer.makefile("rb") as file:
                return [self._call(peer, file, words) for words in commands]

    def _call(self, peer, file, words):
        out = b"*%d\r\n" % len(words)
        for word in words:
            word = word.encode() if isinstance(word, str) else word
            out += b"$%d\r\n%s\r\n" % (len(word), word)
        peer.sendall(out)
        return self._read(file)

    def _read(self, file):
        line = file.readline().rstrip().decode()
        if line.startswith("*"):
            return [self._read(file) for _ in range(int(line[1:]))]
        if line.startswith("-"):
            raise AssertionError(f"redis: {line}")
        if line.startswith("$"):
            return file.read(int(line[1:]) + 2)[:-2] if line != "$-1" else None
        return line[1:]

    def is_ready(self):
        return self.call("PING") == "PONG"

    def stop(self):
        if self.process is not None and self.process.poll() is None:
            self.signal(signal.SIGCONT)
        super().stop()

    def pause(self):
        self.signal(signal.SIGSTOP)

    def go_on(self):
        self.signal(signal.SIGCONT)
        wait_until(self.is_ready, "redis answers again")


class LoadingRedis(Redis):
    """One that takes its time to read what it has saved."""
    KEYS, KEY_US = 500, 3000

    def __init__(self, place):
        super().__init__(place, "redis", "--dir", tempfile.mkdtemp(dir=place.sub("tmp")),
                         "--rdbcompression", "no", "--key-load-delay", str(self.KEY_US),
                         "--loading-process-events-interval-bytes", "1024")

    def start(self):
        super().start()
        self.call("EVAL", f"for i = 1, {self.KEYS} do redis.call('SET', 'other:' .. i, "
                  "string.rep('x', 20) .. i) end", "0")
        return self

    def is_ready(self):
        try:
            return super().is_ready()
        except AssertionError:
            return False

    def begin_anew(self):
        self.call("SHUTDOWN", "SAVE")
        self.wait()
        self.begin()
        wait_until(self.is_loading, "it is loading")

    def is_loading(self):
        try:
            return not self.call("PING")
        except AssertionError as error:
            return "LOADING" in str(error)

    def wait_loaded(self):
        wait_until(self.is_ready, "it has loaded")

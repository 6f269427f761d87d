"""A private redis-server on a unix socket, without persistence."""

import os
import signal
import socket

from weirtest.process import Server, wait_until

# redis-server, or another of the same kind, as valkey-server.
PROGRAM = os.environ.get("WEIR_TEST_REDIS_SERVER") or "redis-server"


class Redis(Server):
    death_signal = signal.SIGKILL       # a stopped one would keep any other waiting

    def __init__(self, place, name="redis"):
        super().__init__(place, name)
        self.socket = place.socket(name)

    @property
    def address(self):
        return "unix:" + self.socket

    @property
    def keys(self):
        """Of [redis]."""
        return "server = " + self.address

    def command(self):
        return [PROGRAM, "--port", "0", "--unixsocket", self.socket,
                "--unixsocketperm", "777", "--save", "", "--appendonly", "no",
                "--dir", self.place.sub("tmp"), "--daemonize", "no"]

    def call(self, *words):
        """One command, one line or bulk string or number in return."""
        with socket.socket(socket.AF_UNIX) as peer:
            peer.settimeout(5)
            peer.connect(self.socket)
            out = b"*%d\r\n" % len(words)
            for word in words:
                word = word.encode() if isinstance(word, str) else word
                out += b"$%d\r\n%s\r\n" % (len(word), word)
            peer.sendall(out)
            with peer.makefile("rb") as file:
                line = file.readline().rstrip().decode()
                if line.startswith("-"):
                    raise AssertionError(f"redis: {line}")
                if line.startswith("$"):
                    return file.read(int(line[1:]))
                return line[1:]

    def is_ready(self):
        return self.call("PING") == "PONG"

    def pause(self):
        self.signal(signal.SIGSTOP)

    def go_on(self):
        self.signal(signal.SIGCONT)
        wait_until(self.is_ready, "redis answers again")

"""Redis servers on TCP that replicate, and the sentinels that watch them."""

import signal
import socket

from weirtest import redis
from weirtest.process import Server, free_port, wait_until

MASTER = "main"


class Node(Server):
    """Asked on a port of 127.0.0.1; what is common to servers and sentinels."""

    death_signal = signal.SIGKILL       # a stopped one would keep any other waiting

    def __init__(self, place, name):
        super().__init__(place, name)
        self.port = free_port()

    def call(self, *words):
        """One command, and its reply: a text, a number as a text, or a list of them."""
        return self.calls(words)[0]

    def calls(self, *commands):
        """Several over one connection."""
        with self.connect() as peer, peer.makefile("rb") as file:
            return [self._call(peer, file, words) for words in commands]

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), 5)

    def _call(self, peer, file, words):
        out = b"*%d\r\n" % len(words)
        for word in words:
            out += b"$%d\r\n%s\r\n" % (len(word.encode()), word.encode())
        peer.sendall(out)
        return self._read(file)

    def _read(self, file):
        line = file.readline().rstrip().decode()
        if line.startswith("-"):
            raise AssertionError(f"{self.name}: {line}")
        if line.startswith("$"):
            return file.read(int(line[1:]) + 2)[:-2].decode() if line != "$-1" else None
        if line.startswith("*"):
            return [self._read(file) for _ in range(int(line[1:]))]
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


class RedisNode(Node):
    def __init__(self, place, name, master=None):
        super().__init__(place, name)
        self._master = master

    def command(self):
        replica = [] if self._master is None else ["--replicaof", "127.0.0.1",
                                                   str(self._master.port)]
        return [redis.PROGRAM, "--port", str(self.port), "--bind", "127.0.0.1", "--save", "",
                "--appendonly", "no", "--dir", self.place.sub("tmp"), "--daemonize", "no",
                "--repl-diskless-sync-delay", "0", *replica]

    def role(self):
        return self.call("ROLE")[0]


class Sentinel(Node):
    def __init__(self, place, name, master, quorum):
        super().__init__(place, name)
        # It writes what it learns into its file.
        self._file = place.sub("tmp", name + ".conf")
        with open(self._file, "w", encoding="utf-8") as file:
            file.write(f"port {self.port}\nbind 127.0.0.1\ndir {place.sub('tmp')}\n"
                       f"sentinel monitor {MASTER} 127.0.0.1 {master.port} {quorum}\n"
                       f"sentinel down-after-milliseconds {MASTER} 500\n"
                       f"sentinel failover-timeout {MASTER} 3000\n")

    def command(self):
        return [redis.PROGRAM, self._file, "--sentinel", "--daemonize", "no"]

    def master_port(self):
        return int(self.call("SENTINEL", "GET-MASTER-ADDR-BY-NAME", MASTER)[1])

    def _knows(self, count):
        """A replica, and the other sentinels."""
        facts = self.call("SENTINEL", "MASTER", MASTER)
        facts = dict(zip(facts[::2], facts[1::2]))
        return (int(facts["num-slaves"]), int(facts["num-other-sentinels"])) == (1, count)


class Watched:
    """A master, its replica, and three sentinels, of which two decide."""

    def __init__(self, case, place, prefix):
        first = case.start(RedisNode(place, prefix + "-a"))
        second = case.start(RedisNode(place, prefix + "-b", first))
        self.nodes = [first, second]
        self.sentinels = [case.start(Sentinel(place, f"{prefix}-s{number}", first, 2))
                          for number in range(3)]
        # pylint: disable=protected-access
        wait_until(lambda: all(sentinel._knows(2) for sentinel in self.sentinels),
                   "the sentinels know each other", 15)

    @property
    def keys(self):
        """Of [redis]."""
        addresses = ", ".join(f"tcp:127.0.0.1:{sentinel.port}" for sentinel in self.sentinels)
        return f"sentinel = {addresses}\nmaster = {MASTER}"

    def others(self, node):
        return [other for other in self.nodes if other is not node]

    def await_master(self, node, seconds=15):
        """Until all sentinels that answer name this one, and it is one."""
        def named():
            return node.role() == "master" and all(
                sentinel.master_port() == node.port for sentinel in self.sentinels
                if sentinel.process is not None)
        wait_until(named, f"{node.name} is the master", seconds)

"""A peer between weir and a real Redis, that can be told to spoil what passes: to be silent, to
say half a reply, to say something else. What it has passed on before is answered whole first, so
Redis has decided nothing that weir did not hear of."""

import os
import selectors
import socket
import threading

READ_SIZE = 65536

# Replies that are none to what was asked: one shape after the other.
WRONG = [b"+OK\r\n", b"$5\r\nhello\r\n", b":1\r\n", b"$-1\r\n", b"*-1\r\n", b"*0\r\n",
         b"*1\r\n:1\r\n", b"*3\r\n:1\r\n:1\r\n$1\r\n1\r\n", b"*3\r\n:1\r\n:1\r\n*1\r\n:1\r\n",
         b"*3\r\n:9\r\n:1\r\n:1\r\n", b"*3\r\n:1\r\n:-1\r\n:1\r\n",
         b"*4\r\n:1\r\n:1\r\n:1\r\n:1\r\n", b"*3\r\n:1\r\n:1\r\n:9223372036854775807\r\n",
         b"*2147483647\r\n", b"$2147483647\r\n", b"*3\r\n:x\r\n", b"-\r\n", b"\r\n",
         b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\x15\x03\x01\x00\x02\x02\x50"]


def message_end(data, at=0):
    """Where the command or reply ends that begins there; None: it is not whole yet."""
    line_end = data.find(b"\r\n", at)
    if line_end < 0:
        return None
    kind, number = data[at:at + 1], data[at + 1:line_end]
    at = line_end + 2
    if kind == b"$" and int(number) >= 0:
        at += int(number) + 2
        return at if at <= len(data) else None
    for _ in range(int(number) if kind == b"*" else 0):
        at = message_end(data, at)
        if at is None:
            return None
    return at


class _Link:
    """One of weir's connections, and the one to Redis that belongs to it."""

    def __init__(self, proxy, peer):
        self.proxy, self.peer = proxy, peer
        self.server = socket.socket(socket.AF_UNIX)
        try:
            self.server.connect(proxy.redis.socket)
        except OSError:
            self.server.close()
            raise
        self.commands, self.replies = b"", b""
        self.owed = 0           # replies to what was passed on
        self.is_spoilt = False

    def close(self):
        self.peer.close()
        self.server.close()

    def take(self, source):
        """False: it has ended."""
        try:
            data = source.recv(READ_SIZE)
            if data and source is self.peer:
                self._ask(data)
            elif data:
                self._answer(data)
        except OSError:
            return False
        return bool(data)

    def _ask(self, data):
        self.commands += data
        while not self.is_spoilt:
            end = message_end(self.commands)
            if end is None:
                return
            if self.proxy.mode != "pass":
                self.spoil()
                return
            self.server.sendall(self.commands[:end])
            self.commands = self.commands[end:]
            self.owed += 1

    def _answer(self, data):
        self.replies += data
        while (end := message_end(self.replies)) is not None:
            self.peer.sendall(self.replies[:end])
            self.replies = self.replies[end:]
            self.owed -= 1
        if self.commands:
            self.spoil()

    def spoil(self):
        """As soon as all is answered that was passed on, and once."""
        if self.proxy.mode == "pass" or self.is_spoilt or self.owed > 0:
            return
        self.is_spoilt = True
        self.proxy.spoilt += 1
        if self.proxy.mode == "half":
            self.peer.sendall(b"*3\r\n:1\r\n:17")
        elif self.proxy.mode == "wrong":
            self.peer.sendall(WRONG[self.proxy.spoilt % len(WRONG)])


class Proxy:
    """In place of `redis` for weir. Modes: "pass", "silent", "half", "wrong"."""

    def __init__(self, place, redis):
        self.redis, self.mode, self.spoilt = redis, "pass", 0
        self.socket = place.socket(redis.name + "-proxy")
        self._listener = socket.socket(socket.AF_UNIX)
        self._ends, self._end = socket.socketpair()
        self._thread = threading.Thread(target=self._run)

    @property
    def keys(self):
        """Of [redis]."""
        return f"server = unix:{self.socket}"

    def start(self):
        self._listener.bind(self.socket)
        os.chmod(self.socket, 0o777)
        self._listener.listen(1024)
        self._thread.start()
        return self

    def stop(self):
        self._end.close()
        self._thread.join()
        self._ends.close()
        self._listener.close()
        os.unlink(self.socket)

    def _run(self):
        with selectors.DefaultSelector() as selector:
            selector.register(self._ends, selectors.EVENT_READ)
            selector.register(self._listener, selectors.EVENT_READ)
            while self._turn(selector):
                pass
            for key in list(selector.get_map().values()):
                if key.data is not None:
                    key.data.close()

    def _turn(self, selector):
        for key, _ in selector.select():
            if key.fileobj is self._ends:
                return False
            if key.fileobj is self._listener:
                self._accept(selector)
            elif key.fileobj.fileno() >= 0 and not key.data.take(key.fileobj):
                selector.unregister(key.data.peer)
                selector.unregister(key.data.server)
                key.data.close()
        return True

    def _accept(self, selector):
        peer, _ = self._listener.accept()
        try:
            link = _Link(self, peer)
        except OSError:                 # Redis is not there
            peer.close()
            return
        selector.register(peer, selectors.EVENT_READ, link)
        selector.register(link.server, selectors.EVENT_READ, link)

#!/usr/bin/python3 -B
"""An answer that is shorter than its Content-Length, whether the application ends it in order or is
gone, behind each web server: the next answer on the client's connection is no part of it."""

import contextlib
import os
import socket
import struct
import threading

import weirtest
from weirtest import Case, Lighttpd, Nginx, Weir, fcgi
from weirtest.apache import ApacheFcgid, ApacheProxy
from weirtest.client import ask, connect

ROUTES = """\
[backend application]
server = unix:{}

[route default]
match = *
"""

SHORT = b"Content-Type: text/plain\r\nContent-Length: 100\r\n\r\n0123456789"
HALF = b"Content-Type: text/plain\r\n\r\nhalf"
FULL = b"Content-Type: text/plain\r\nContent-Length: 6\r\n\r\nSECOND"
END = fcgi.record(fcgi.END_REQUEST, struct.pack("!IB3x", 0, 0))


class Application:
    def __init__(self, path):
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(path)
        os.chmod(path, 0o777)
        self._listener.listen(100)
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                peer, _ = self._listener.accept()
                with peer:
                    self._answer(peer)

    def _answer(self, peer):
        params = b""
        file = peer.makefile("rb")
        while len(head := file.read(8)) == 8:
            _, kind, _, length, padding = struct.unpack("!BBHHBx", head)
            content = file.read(length + padding)[:length]
            if kind == fcgi.PARAMS:
                params += content
            elif kind == fcgi.STDIN and length == 0:
                break
        answer = (FULL if b"do=full" in params else HALF if b"do=half" in params else SHORT)
        peer.sendall(fcgi.record(fcgi.STDOUT, answer))
        if b"do=gone" not in params and answer != HALF:
            peer.sendall(fcgi.record(fcgi.STDOUT) + END)


def received_of(peer, *queries):
    """All that comes of one request after the other on a connection, each sent when the body of
    the one before stops coming, as long as the connection is there."""
    received = b""
    with contextlib.suppress(ConnectionError):
        for query in queries:
            peer.sendall(f"GET /a.php?{query} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            with contextlib.suppress(TimeoutError):
                while data := peer.recv(65536):
                    received += data
    return received


class ShortAnswers(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        with open(os.path.join(cls.place.documents, "a.php"), "w", encoding="ascii"):
            pass
        cls.application = Application(cls.place.socket("application"))
        cls.addClassCleanup(cls.application.close)
        cls.routes = ROUTES.format(cls.place.socket("application"))
        cls.front = cls.start_for_class(cls.make_front())

    @classmethod
    def weir(cls):
        return cls.start_for_class(Weir(cls.place, None, cls.routes)).socket


class FrontTests:
    @classmethod
    def make_front(cls):
        raise NotImplementedError

    def test_the_next_answer_is_no_part_of_a_short_one(self):
        for how in ("do=short", "do=gone"):
            with self.subTest(how):
                peer = connect(self.front.port, 0.5)
                received = received_of(peer, how, "do=full")
                peer.close()
                head, _, body = received.partition(b"\r\n\r\n")
                if b"Content-Length: 100" in head:
                    self.assertEqual(body, b"0123456789")
                self.assertNotIn(b"SECOND", body.partition(b"HTTP/1.1 ")[0])
        peer = connect(self.front.port, 0.5)
        self.assertIn(b"SECOND", received_of(peer, "do=full"))
        peer.close()


class BehindLighttpd(FrontTests, ShortAnswers):
    needs = ("lighttpd",)

    @classmethod
    def make_front(cls):
        return Lighttpd(cls.place, cls.weir())


class BehindNginx(FrontTests, ShortAnswers):
    needs = ("nginx",)

    @classmethod
    def make_front(cls):
        return Nginx(cls.place, cls.weir())


class BehindModProxyFcgi(FrontTests, ShortAnswers):
    needs = ("apache2",)

    @classmethod
    def make_front(cls):
        return ApacheProxy(cls.place, cls.weir())

    def test_half_an_answer_without_a_length_is_seen_to_be_cut(self):
        answer = ask(self.front.port, "/a.php?do=half")
        self.assertEqual((answer.status, answer.is_whole), (200, False))


class SpawnedWeir(Weir):
    """Has its socket as descriptor 0, as from mod_fcgid."""

    def command(self):
        return ["spawn-fcgi", "-n", "-M", "0666", "-s", self.socket, "--", *super().command()]


class BehindModProxyFcgiBySpawnFcgi(BehindModProxyFcgi):
    needs = ("apache2", "spawn-fcgi")

    @classmethod
    def weir(cls):
        return cls.start_for_class(SpawnedWeir(cls.place, None, cls.routes, spawned=True)).socket


class BehindModFcgid(FrontTests, ShortAnswers):
    needs = ("apache2",)

    @classmethod
    def make_front(cls):
        weir = Weir(cls.place, None, cls.routes, spawned=True)
        return ApacheFcgid(cls.place, weir.command())


if __name__ == "__main__":
    weirtest.main()

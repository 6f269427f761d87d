#!/usr/bin/python3 -B
"""A client that goes away, at each stage of its request: within a second the application's
connection is closed, the places that the request held are free, and the counters are right. And the
other way round: an application that goes in the middle of its answer is seen by the client."""

import contextlib
import os
import select
import socket
import struct
import threading

import weirtest
from weirtest import Case, HAProxy, Lighttpd, Nginx, Weir, fcgi, wait_until
from weirtest.client import connect
from weirtest.process import free_port

ROUTES = """\
[backend]
connect_timeout = 30s

[backend application]
server = unix:{application}

[backend full]
server = unix:{full}

[limit places]
policy = concurrent 100

[route full]
script = /full.php
limit = places
backend = full

[route default]
match = *
limit = places
backend = application
"""

UPLOAD = 10 * 1024 * 1024
PART = bytes(256 * 1024)
# More than the application's socket and weir's queue for it take; what is left over is read ahead.
MORE = bytes(400 * 1024)


class Application:
    """Does as the first word of QUERY_STRING says: `reads` the request and is silent, `stalls` and
    reads no body, `begins` an answer and is silent or `flows` on, `ends` in the middle of one, with
    or without END_REQUEST."""

    HEAD = b"Content-Type: text/plain\r\n\r\n"

    def __init__(self, path):
        self.asked = self.open = 0
        self._lock = threading.Lock()
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
                threading.Thread(target=self._serve, args=(peer,), daemon=True).start()

    def _count(self, name, change):
        with self._lock:
            setattr(self, name, getattr(self, name) + change)

    def _serve(self, peer):
        self._count("open", 1)
        with contextlib.suppress(OSError), peer:
            self._answer(peer)
        self._count("open", -1)

    @staticmethod
    def _is_ended(peer, milliseconds=None):
        end = select.poll()
        end.register(peer, 0)
        return end.poll(milliseconds) != []

    def _flow(self, peer):
        while not self._is_ended(peer, 20):
            peer.sendall(fcgi.record(fcgi.STDOUT, b"and on"))

    def _answer(self, peer):
        file = peer.makefile("rb")
        params = b""
        while True:
            head = file.read(8)
            if len(head) < 8:
                return
            _, kind, _, length, padding = struct.unpack("!BBHHBx", head)
            content = file.read(length + padding)[:length]
            if kind == fcgi.PARAMS and length > 0:
                params += content
            elif kind == fcgi.PARAMS:
                self._count("asked", 1)
                if b"do=stalls" in params:
                    self._is_ended(peer)
                    return
            elif kind == fcgi.STDIN and length == 0 and b"do=begins" in params:
                peer.sendall(fcgi.record(fcgi.STDOUT, self.HEAD + b"begun"))
            elif kind == fcgi.STDIN and length == 0 and b"do=flows" in params:
                peer.sendall(fcgi.record(fcgi.STDOUT, self.HEAD + b"begun"))
                self._flow(peer)
                return
            elif kind == fcgi.STDIN and length == 0 and b"do=ends" in params:
                length = b"Content-Length: 100\r\n" if b"said" in params else b""
                peer.sendall(fcgi.record(fcgi.STDOUT, length + self.HEAD + b"begun"))
                return


class Aborts(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.application = Application(cls.place.socket("application"))
        cls.addClassCleanup(cls.application.close)
        # Its backlog is full, and it never accepts.
        full = socket.socket(socket.AF_UNIX)
        full.bind(cls.place.socket("full"))
        full.listen(0)
        os.chmod(cls.place.socket("full"), 0o777)
        filler = connect(cls.place.socket("full"))
        cls.addClassCleanup(full.close)
        cls.addClassCleanup(filler.close)
        cls.port = free_port()
        cls.weir = cls.start_for_class(Weir(
            cls.place, None, ROUTES.format(application=cls.place.socket("application"),
                                           full=cls.place.socket("full")),
            weir=f"spool_directory = {cls.place.sub('tmp')}\n"
                 f"listen = tcp:127.0.0.1:{cls.port}"))

    def now(self):
        metrics = self.weir.metrics()
        return {
            "requests": metrics.get("weir_requests_in_flight"),
            "leases": metrics.get("weir_leases"),
            "backends": metrics.total("weir_backend_in_flight"),
            "application": self.application.open,
            "connections": metrics.get("weir_connections"),
        }

    def at_rest(self):
        """What now() is when nothing of other tests is left: the application closes later."""
        wait_until(lambda: not any(self.now().values()), "those of other tests are gone")
        return self.now()

    def gone(self):
        return self.weir.metrics().total("weir_requests_total", outcome="client_gone")

    def leave(self, peer):
        peer.close()

    def assert_abort(self, begin, reached, leave=None):
        """`begin`: returns a connection on which a request has come so far."""
        before, gone = self.at_rest(), self.gone()
        peer = begin()
        wait_until(reached, "the request has come so far")
        busy = self.now()
        self.assertEqual((busy["requests"], busy["leases"]),
                         (before["requests"] + 1, before["leases"] + 1))
        (leave or self.leave)(peer)
        wait_until(lambda: all(now <= before[name] for name, now in self.now().items()),
                   "nothing is left of the request", 1)
        self.assertEqual(self.gone() - gone, 1)


class FrontTests:
    """What each kind of client does: `request` sends the head of one, a part of its body of UPLOAD
    bytes, or all of a small one."""

    def request(self, path, query, sent=None, chunked=False):
        raise NotImplementedError

    def asked(self):
        """Becomes true when the application has one request more."""
        before = self.application.asked
        return lambda: self.application.asked > before

    def begun(self, query):
        peer = self.request("/a.php", query)
        received = b""
        while b"begun" not in received:
            received += peer.recv(65536)
        return peer

    def test_in_the_middle_of_the_answer(self):
        self.assert_abort(lambda: self.begun("do=begins"), self.asked())


class WaitTests(FrontTests):
    """For those that notice a client's end before the answer has begun."""

    def test_while_the_application_is_connected_to(self):
        waits = self.weir.metrics().total("weir_backend_in_flight", backend="full")
        self.assert_abort(
            lambda: self.request("/full.php", "do=reads"),
            lambda: self.weir.metrics().total("weir_backend_in_flight", backend="full") > waits)

    def test_while_the_answer_is_waited_for(self):
        self.assert_abort(lambda: self.request("/a.php", "do=reads"), self.asked())


class StreamTests(WaitTests):
    """For those that pass a body on before it is whole."""

    def test_upload(self):
        self.assert_abort(lambda: self.request("/a.php", "do=reads", PART), self.asked())

    def test_upload_that_is_not_read(self):
        self.assert_abort(lambda: self.request("/a.php", "do=stalls", MORE), self.asked())

    def stored(self):
        directory = f"/proc/{self.weir.pid}/fd"
        return any(self.place.sub("tmp") in os.readlink(os.path.join(directory, name))
                   for name in os.listdir(directory))

    def test_upload_of_unknown_length(self):
        self.assert_abort(lambda: self.request("/a.php", "do=reads", PART, True), self.stored)
        self.assertFalse(self.stored())


class Raw(StreamTests, Aborts):
    @property
    def address(self):
        return self.weir.socket

    def request(self, path, query, sent=None, chunked=False):
        params = fcgi.usual_params(path, REQUEST_METHOD="POST", QUERY_STRING=query,
                                   CONTENT_LENGTH="" if chunked else str(UPLOAD))
        if sent is None:
            params["CONTENT_LENGTH"] = "0"
        peer = connect(self.address)
        whole = fcgi.request(params, body=sent or b"")
        # Without the end of the body.
        peer.sendall(whole if sent is None else whole[:-8])
        return peer

    def test_head(self):
        """Nobody has been asked for it, and nobody counts it."""
        whole = fcgi.request(fcgi.usual_params("/a.php"))
        before, total = self.at_rest(), self.weir.metrics().total("weir_requests_total")
        for sent in (whole[:20], whole[:60]):
            peer = connect(self.address)
            peer.sendall(sent)
            wait_until(lambda: self.now()["connections"] > before["connections"], "it is there")
            peer.close()
            wait_until(lambda: self.now() == before, "it is gone", 1)
        self.assertEqual(self.weir.metrics().total("weir_requests_total"), total)

    def abort(self, peer):
        peer.sendall(fcgi.record(fcgi.ABORT_REQUEST))
        self.assertEqual(peer.recv(16)[1], fcgi.END_REQUEST)
        peer.close()

    def test_abort_of_an_upload(self):
        """Whether the application reads the body or not."""
        for query, part in (("do=reads", PART), ("do=stalls", MORE)):
            with self.subTest(query=query):
                self.assert_abort(lambda: self.request("/a.php", query, part), self.asked(),
                                  self.abort)

    def test_application_that_ends_in_the_middle(self):
        """Without END_REQUEST; the head has gone and the client must see the rest missing."""
        for query in ("do=ends", "do=ends+said"):
            for keep in (False, True):
                with self.subTest(query=query, keep=keep):
                    reply = fcgi.ask(self.address, fcgi.usual_params(
                        "/a.php", QUERY_STRING=query), keep=keep)
                    self.assertEqual((reply.status, reply.body, reply.is_whole),
                                     (200, b"begun", False))


class RawOverTcp(Raw):
    @property
    def address(self):
        return self.port


class HttpTests(FrontTests):
    @classmethod
    def make_front(cls):
        raise NotImplementedError

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for name in ("a.php", "full.php"):
            with open(os.path.join(cls.place.documents, name), "w", encoding="ascii"):
                pass
        cls.front = cls.start_for_class(cls.make_front())

    def request(self, path, query, sent=None, chunked=False):
        head = f"POST {path}?{query} HTTP/1.1\r\nHost: localhost\r\n"
        if chunked:
            head += "Transfer-Encoding: chunked\r\n\r\n"
        else:
            head += f"Content-Length: {0 if sent is None else UPLOAD}\r\n\r\n"
        peer = connect(self.front.port)
        peer.sendall(head.encode())
        if chunked:
            peer.sendall(b"%x\r\n" % len(sent) + sent + b"\r\n")
        elif sent is not None:
            peer.sendall(sent)
        return peer


class BehindNginx(StreamTests, HttpTests, Aborts):
    needs = ("nginx",)

    @classmethod
    def make_front(cls):
        return Nginx(cls.place, cls.weir.socket, store_uploads=False)


class SilentHAProxy(HAProxy):
    def is_ready(self):
        connect(self.port).close()
        return True


class BehindHAProxy(HttpTests, Aborts):
    """It does not look at a client whose whole request it has, unless it has to send him something,
    whatever `option abortonclose` says (2.6)."""

    needs = ("haproxy",)
    test_upload = StreamTests.test_upload
    test_upload_that_is_not_read = StreamTests.test_upload_that_is_not_read

    @classmethod
    def make_front(cls):
        return SilentHAProxy(cls.place, cls.weir.socket)

    def test_in_the_middle_of_the_answer(self):
        self.assert_abort(lambda: self.begun("do=flows"), self.asked())


class BehindLighttpd(HttpTests, Aborts):
    needs = ("lighttpd",)

    def leave(self, peer):
        """As far as lighttpd can tell, who only ends his connection may still read. Before an
        answer has begun it does not look at the client at all."""
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        peer.close()

    @classmethod
    def make_front(cls):
        return Lighttpd(cls.place, cls.weir.socket)


if __name__ == "__main__":
    weirtest.main()

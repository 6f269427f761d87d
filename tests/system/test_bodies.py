#!/usr/bin/python3 -B
"""Bodies that come without their length: what is in them arrives, and nothing is left of them."""

import hashlib
import json
import os
import time

import weirtest
from weirtest import ApacheProxy, Case, Nginx, PhpFpm, Weir, Zeros, fcgi, wait_until
from weirtest.client import connect

ROUTES = """\
[backend]
spool = 12m

[backend program]
type = cgi
program = {program}

[backend late]
type = cgi
program = {late}
idle_timeout = 1s

[limit one]
policy = 1/1d

[route program]
script = /program
backend = program

[route late]
script = /late
backend = late

[route one]
script = /limited.php
limit = one
backend = php

[route default]
match = *
backend = php
"""

PROGRAM = """\
#!/bin/sh
echo "Content-Type: text/plain"
echo
echo "$CONTENT_LENGTH ${HTTP_TRANSFER_ENCODING-none} $(sha256sum | cut -d' ' -f1)"
"""

LATE = """\
#!/bin/sh
read_by_now=$(wc -c)
sleep 0.6
printf 'Content-Type: text/plain\\n\\n%s' "$read_by_now"
"""

MIB = 1024 * 1024
GIB = 1024 * MIB


class Bodies(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.php = cls.start_for_class(PhpFpm(cls.place))
        cls.weir = cls.start_for_class(Weir(
            cls.place, cls.php, ROUTES.format(program=cls.make_program("program", PROGRAM),
                                              late=cls.make_program("late", LATE)),
            weir="spool_directory = " + cls.place.sub("tmp")))

    @classmethod
    def make_program(cls, name, script):
        path = cls.place.sub("bin", name)
        with open(path, "w", encoding="ascii") as file:
            file.write(script)
        os.chmod(path, 0o755)
        return path

    def stored(self):
        """How many bodies weir holds on the disk."""
        links = (os.path.join(f"/proc/{self.weir.pid}/fd", name)
                 for name in os.listdir(f"/proc/{self.weir.pid}/fd"))
        return sum(self.place.sub("tmp") in os.readlink(link) for link in links
                   if os.path.lexists(link))

    def memory_kib(self):
        with open(f"/proc/{self.weir.pid}/status", encoding="ascii") as file:
            return int(next(line for line in file if line.startswith("VmRSS:")).split()[1])

    def bytes_read(self):
        """By weir, of sockets and files."""
        with open(f"/proc/{self.weir.pid}/io", encoding="ascii") as file:
            return int(file.readline().removeprefix("rchar: "))

    def assert_nothing_is_left(self):
        wait_until(lambda: self.weir.metrics().get("weir_requests_in_flight") == 0,
                   "weir has no request left", 2)
        self.assertEqual(self.stored(), 0)
        self.assertEqual([name for name in os.listdir(self.place.sub("tmp"))
                          if name.startswith("weir-")], [])


class WithoutAFront(Bodies):
    def test_program(self):
        """For a program as for php-fpm: without CONTENT_LENGTH it would read nothing."""
        body = os.urandom(3 * MIB)
        params = fcgi.usual_params("/program", self.place.documents, REQUEST_METHOD="POST",
                                   HTTP_TRANSFER_ENCODING="chunked")
        reply = fcgi.ask(self.weir.socket, params, body=body)
        self.assertEqual(reply.body.decode(),
                         f"{len(body)} none {hashlib.sha256(body).hexdigest()}\n")
        self.assert_nothing_is_left()

    def test_slow_upload_takes_no_time_from_the_application(self):
        """Its idle_timeout begins with the end of the body, also where that comes late in it."""
        params = fcgi.usual_params("/late", self.place.documents, REQUEST_METHOD="POST",
                                   CONTENT_LENGTH="4")
        with fcgi.Connection(self.weir.socket) as peer:
            peer.send(fcgi.request(params)[:-8])
            for _ in range(4):
                peer.send(fcgi.record(fcgi.STDIN, b"x"))
                time.sleep(0.3)
            time.sleep(1.4)     # 1.7 s of silence: the second second of it has begun
            peer.send(fcgi.record(fcgi.STDIN, b""))
            self.assertEqual(peer.reply().body, b"4")
        self.assert_nothing_is_left()

    def test_rejected_upload_of_1_gib_is_answered_before_it_comes(self):
        """And a web server that sends all of it nevertheless is not kept from it: what comes is
        forgotten."""
        params = fcgi.usual_params("/limited.php", self.place.documents, REQUEST_METHOD="POST")
        self.assertIn(429, {fcgi.ask(self.weir.socket, params).status for _ in range(2)})
        params["CONTENT_LENGTH"] = str(GIB)
        records = fcgi.record(fcgi.STDIN, bytes(32768)) * 32
        for keep in (True, False):
            with self.subTest(keep=keep), fcgi.Connection(self.weir.socket) as peer:
                peer.send(fcgi.request(params, keep=keep)[:-8] + records)
                reply = peer.reply()
                self.assertEqual((reply.status, reply.is_whole), (429, True))
                before, most = self.memory_kib(), 0
                for _ in range(GIB // MIB - 1):
                    peer.send(records)
                    most = max(most, self.memory_kib())
                self.assert_small(most - before, 1024, "grown by 1 GiB that nobody wants")
        self.assert_nothing_is_left()
        self.assertEqual(self.weir.metrics().get("weir_backend_in_flight", backend="php"), 0)


class FrontTests:
    """Web servers that pass on an upload in chunks as it comes."""

    def make_front(self, name, **how):
        raise NotImplementedError

    def each_front(self):
        for keep in (True, False):
            with self.subTest(keep=keep):
                yield self.start(self.make_front(f"front-{keep}-{self._testMethodName}", keep))

    def outcomes(self):
        return {name: self.weir.metrics().total("weir_requests_total", outcome=name)
                for name in ("admitted", "client_gone", "no_length", "backend_failed")}

    def test_upload_of_10_mib(self):
        body = os.urandom(10 * MIB)
        for front in self.each_front():
            answer = front.ask("/hash.php", "POST", body=body, chunked=True)
            self.assertEqual(answer.status, 200)
            self.assertEqual(json.loads(answer.text), {
                "length": len(body), "sha256": hashlib.sha256(body).hexdigest()})
            self.assert_nothing_is_left()

    def test_upload_that_is_too_large(self):
        for front in self.each_front():
            answer = front.ask("/hash.php", "POST", body=Zeros(13 * MIB), chunked=True)
            self.assertEqual((answer.status, answer.is_whole), (413, True))
            self.assert_nothing_is_left()
            self.assertEqual(front.ask("/index.php").status, 200)
        # One line a minute.
        self.assert_logged(self.weir, 1, "answered with 413")

    def test_upload_that_is_rejected(self):
        for front in self.each_front():
            seen = {front.ask("/limited.php").status for _ in range(2)}
            self.assertIn(429, seen)
            answer = front.ask("/limited.php", "POST", body=Zeros(10 * MIB), chunked=True)
            self.assertEqual((answer.status, answer.is_whole), (429, True))
            self.assert_nothing_is_left()

    def test_rejected_upload_of_1_gib(self):
        """The client hears of it in time to keep most of it."""
        for front in self.each_front():
            self.assertIn(429, {front.ask("/limited.php").status for _ in range(2)})
            memory, read = self.memory_kib(), self.bytes_read()
            answer = front.ask("/limited.php", "POST", body=Zeros(GIB))
            self.assertEqual((answer.status, answer.is_whole), (429, True))
            self.assertIsNotNone(answer["Retry-After"])
            self.assert_nothing_is_left()
            read = self.bytes_read() - read
            self.say(f"{answer.sent / MIB:.1f} MiB were sent, {read / MIB:.1f} MiB read")
            self.assertLess(max(answer.sent, read), 64 * MIB)
            self.assert_small(self.memory_kib() - memory, 4096, "grown")

    def test_client_that_goes_in_the_middle(self):
        for front in self.each_front():
            before = self.outcomes()
            peer = connect(front.port)
            peer.sendall(b"POST /hash.php HTTP/1.1\r\nHost: localhost\r\n"
                         b"Transfer-Encoding: chunked\r\n\r\n")
            for _ in range(20):
                peer.sendall(b"10000\r\n" + bytes(65536) + b"\r\n")
            wait_until(lambda: self.stored() == 1, "the body is being stored", 10)
            peer.close()
            self.assert_nothing_is_left()
            after = self.outcomes()
            self.assertEqual({name for name in after if after[name] != before[name]},
                             {"client_gone"})
            self.assertEqual(self.weir.metrics().get("weir_backend_in_flight", backend="php"), 0)


class BehindNginx(FrontTests, Bodies):
    needs = ("nginx",)

    def make_front(self, name, keep):
        return Nginx(self.place, self.weir.socket, name, keep=keep, store_uploads=False)


class BehindApache(FrontTests, Bodies):
    needs = ("apache2",)

    def make_front(self, name, keep):
        return ApacheProxy(self.place, self.weir.socket, name, reuse=keep, learns_length=False)


if __name__ == "__main__":
    weirtest.main()

#!/usr/bin/python3 -B
"""Every web server in front of weir in front of php-fpm: one set of tests for all. What a client
sees must be what it would see without weir, but for what weir is there to do."""

import hashlib
import json
import os
import shutil
import time

import weirtest
from weirtest import (ApacheFcgid, ApacheProxy, Case, Lighttpd, LighttpdSpawn, Nginx, PhpFpm, Redis,
                      Weir, Zeros, wait_until)

ROUTES = """\
[limit one]
policy = 1/1d

[route one]
script = /limited.php
limit = one
headers = x-ratelimit

[route default]
match = *
"""

MIB = 1024 * 1024

# In $_SERVER: what differs from one request to the next.
OF_THE_REQUEST = {"REQUEST_TIME", "REQUEST_TIME_FLOAT", "REMOTE_PORT", "SERVER_PORT"}


def download_sha256(mib):
    """Of what www/download.php sends."""
    rest = b"0123456789abcdef" * 65535
    whole = hashlib.sha256()
    for number in range(mib):
        whole.update(b"%016d" % number + rest)
    return whole.hexdigest()


class FrontTests:
    """The tests. Each class below is a web server in one of its ways."""

    with_redis = False
    tries = 100                     # of a rejected upload
    seeks_script = True             # php-fpm hears of scripts that are not there

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.php = cls.start_for_class(PhpFpm(cls.place))
        redis = cls.start_for_class(Redis(cls.place)) if cls.with_redis else None
        cls.weir = Weir(cls.place, cls.php, ROUTES, redis=redis, spawned=cls.is_spawned())
        if not cls.is_spawned():
            cls.start_for_class(cls.weir)
        cls.front = cls.start_for_class(cls.make_front())

    @classmethod
    def is_spawned(cls):
        return False

    @classmethod
    def make_front(cls):
        raise NotImplementedError

    @classmethod
    def make_direct(cls):
        """The same web server, with php-fpm in weir's place."""
        raise NotImplementedError

    def exhaust(self):
        """From here on /limited.php is rejected."""
        answers = [self.front.ask("/limited.php").status for _ in range(2)]
        self.assertEqual(answers[-1], 429)

    # ---- what passes ----

    def test_get(self):
        answer = self.front.ask("/index.php")
        self.assertEqual((answer.status, answer.text), (200, "hello GET\n"))
        self.assertEqual(answer.all("X-App"), ["yes"])
        self.assertTrue(answer.is_whole)

    def test_post_10_mib(self):
        body = os.urandom(10 * MIB)
        answer = self.front.ask("/hash.php", "POST", body=body)
        self.assertEqual(answer.status, 200)
        self.assertEqual(json.loads(answer.text), {
            "length": len(body), "sha256": hashlib.sha256(body).hexdigest()})

    def test_download_50_mib(self):
        answer = self.front.ask("/download.php?mib=50", keep_body=False)
        self.assertEqual((answer.status, answer.length), (200, 50 * MIB))
        self.assertTrue(answer.is_whole)
        self.assertEqual(answer.sha256, download_sha256(50))

    def test_head(self):
        answer = self.front.ask("/index.php", "HEAD")
        self.assertEqual((answer.status, answer["X-App"], answer.body), (200, "yes", b""))

    def test_not_modified(self):
        answer = self.front.ask("/not_modified.php")
        self.assertEqual((answer.status, answer["ETag"]), (200, '"one"'))
        answer = self.front.ask("/not_modified.php", fields=[("If-None-Match", '"one"')])
        self.assertEqual((answer.status, answer["ETag"], answer.body), (304, '"one"', b""))

    def test_missing_script(self):
        answer = self.front.ask("/no_such.php")
        self.assertEqual(answer.status, 404)
        if self.seeks_script:
            self.assertIn("File not found.", answer.text)
            wait_until(lambda: "Primary script unknown" in self.place.read_log(self.front.name),
                       "php-fpm's reason stands in the front's error log")

    def test_error_log(self):
        self.assertEqual(self.front.ask("/error.php").text, "logged\n")
        wait_until(lambda: "a line for the error log" in self.place.read_log(self.front.name),
                   "the application's line stands in the front's error log")

    def test_large_headers(self):
        answer = self.front.ask("/headers.php", fields=[("X-Large", "x" * 6000)])
        self.assertEqual((answer.status, answer.text), (200, "6000\n"))
        for name in "ABC":
            self.assertEqual(answer["X-Large-" + name], name * 3500)

    def test_cookies_stay_apart_and_in_order(self):
        self.assertEqual(self.front.ask("/cookies.php").all("Set-Cookie"),
                         ["first=1; Path=/", "second=2; Path=/"])

    def test_path_info(self):
        seen = json.loads(self.front.ask("/server.php/a/b%20c?x=1&y=%20").text)
        self.assertEqual(
            {name: seen.get(name) for name in ("SCRIPT_NAME", "PATH_INFO", "QUERY_STRING")},
            {"SCRIPT_NAME": "/server.php", "PATH_INFO": "/a/b c", "QUERY_STRING": "x=1&y=%20"})

    def test_proxy_header_never_passes(self):
        seen = json.loads(self.front.ask("/server.php", fields=[("Proxy", "evil.test:80")]).text)
        self.assertNotIn("HTTP_PROXY", seen)

    def test_application_sees_the_same_as_without_weir(self):
        direct = self.start(self.make_direct())
        fields = [("Host", "example.test"), ("Cookie", "a=1; b=2"), ("X-Twice", "1"),
                  ("X-Twice", "2"), ("User-Agent", "weirtest"), ("Referer", "http://r.test/"),
                  ("Authorization", "Basic dTpw"), ("Content-Type", "text/plain"),
                  ("X-Named", "1"), ("Connection", "close, X-Named, Cookie")]
        for method, path, body in (("GET", "/server.php?x=1&y=%20z", None),
                                   ("GET", "/server.php/extra/p%41th?q", None),
                                   ("POST", "/server.php//a/../b", b"some body"),
                                   ("HEAD", "/server.php", None)):
            with self.subTest(method=method, path=path):
                through, without = (
                    front.ask(path, method, fields=fields, body=body)
                    for front in (self.front, direct))
                self.assertEqual((through.status, without.status), (200, 200))
                if method == "HEAD":
                    continue
                through, without = (
                    {name: value for name, value in json.loads(answer.text).items()
                     if name not in OF_THE_REQUEST} for answer in (through, without))
                self.assertGreater(len(without), 20)
                self.assertEqual(without["PHP_AUTH_USER"], "u")
                self.assertEqual(through, without)

    def test_client_that_goes_away_ends_the_request(self):
        note = self.place.sub("notes", type(self).__name__)
        answer = self.front.ask("/endless.php?note=" + os.path.basename(note), keep_body=False,
                                stop_after=2 * MIB)
        self.assertEqual(answer.status, 200)
        left = time.monotonic()

        def read_note():
            with open(note, encoding="utf-8") as file:
                return file.read()

        self.assertEqual(wait_until(read_note, "php has noticed", 25), "aborted")
        self.say(f"php noticed after {time.monotonic() - left:.2f} s")
        if not self.is_spawned():
            wait_until(lambda: self.weir.metrics().get("weir_requests_in_flight") == 0,
                       "weir has no request left")

    # ---- what does not ----

    def test_rejection(self):
        self.exhaust()
        answer = self.front.ask("/limited.php")
        self.assertEqual((answer.status, answer.reason), (429, "Too Many Requests"))
        self.assertTrue(86000 < int(answer["Retry-After"]) <= 86400, answer)
        self.assertEqual(answer.all("X-RateLimit-Limit"), ["1"])
        self.assertEqual(answer.all("X-RateLimit-Remaining"), ["0"])
        self.assertTrue(86000 < int(answer["X-RateLimit-Reset"]) <= 86400, answer)
        self.assertEqual(answer["Cache-Control"], "no-store")
        self.assertIn("Too many requests.", answer.text)
        self.assertEqual(self.front.ask("/limited.php/behind").status, 429)
        self.assertEqual(self.front.ask("/limited.php", "HEAD").status, 429)
        self.assertEqual(self.front.ask("/index.php").status, 200)

    def test_rejected_upload_of_30_mib(self):
        self.exhaust()
        started = time.monotonic()
        seen, sent = {}, 0
        for _ in range(self.tries):
            answer = self.front.ask("/limited.php", "POST", body=Zeros(30 * MIB))
            outcome = (answer.status, answer.is_whole, answer["Retry-After"] is not None)
            seen[outcome] = seen.get(outcome, 0) + 1
            sent += answer.sent
        spent = time.monotonic() - started
        self.say(f"{self.tries} tries, {1000 * spent / self.tries:.0f} ms and "
                 f"{sent / self.tries / MIB:.1f} MiB sent each: {seen}")
        self.assertEqual(seen, {(429, True, True): self.tries})
        self.assertEqual(self.front.ask("/index.php").status, 200)

    def test_rejected_small_uploads(self):
        """The web server may leave a body unsent that it no longer needs, and keep the connection:
        what follows on it must not suffer."""
        self.exhaust()
        seen = {}
        for length in (1, 1000, 20000, 60000, 200000):
            for _ in range(40):
                rejected = self.front.ask("/limited.php", "POST", body=Zeros(length))
                passed = self.front.ask("/index.php")
                outcome = (length, rejected.status, passed.status, passed.text)
                seen[outcome] = seen.get(outcome, 0) + 1
        self.assertEqual(seen, {(length, 429, 200, "hello GET\n"): 40
                                for length in (1, 1000, 20000, 60000, 200000)})


class ChunkTests:
    """php-fpm reads no body without a length: the front learns it, or weir does."""

    def test_upload_in_chunks(self):
        body = os.urandom(3 * MIB)
        answer = self.front.ask("/hash.php", "POST", body=body, chunked=True)
        self.assertEqual(answer.status, 200)
        self.assertEqual(json.loads(answer.text), {
            "length": len(body), "sha256": hashlib.sha256(body).hexdigest()})


class NginxTests(FrontTests):
    needs = ("nginx",)
    keep = True
    store_uploads = True

    @classmethod
    def make_front(cls):
        return Nginx(cls.place, cls.weir.socket, keep=cls.keep, store_uploads=cls.store_uploads)

    @classmethod
    def make_direct(cls):
        return Nginx(cls.place, cls.php.socket, "direct", keep=False,
                     store_uploads=cls.store_uploads)


class NginxKept(ChunkTests, NginxTests, Case):
    with_redis = True


class NginxNotKept(ChunkTests, NginxTests, Case):
    keep = False


class NginxKeptUnbuffered(ChunkTests, NginxTests, Case):
    store_uploads = False


class NginxNotKeptUnbuffered(ChunkTests, NginxTests, Case):
    with_redis = True
    keep = False
    store_uploads = False


class LighttpdSocket(ChunkTests, FrontTests, Case):
    needs = ("lighttpd",)
    with_redis = True
    seeks_script = False

    @classmethod
    def make_front(cls):
        return Lighttpd(cls.place, cls.weir.socket)

    @classmethod
    def make_direct(cls):
        return Lighttpd(cls.place, cls.php.socket, "direct")


class LighttpdBinPath(ChunkTests, FrontTests, Case):
    needs = ("lighttpd",)
    seeks_script = False

    @classmethod
    def is_spawned(cls):
        return True

    @classmethod
    def make_front(cls):
        return LighttpdSpawn(cls.place, cls.weir)

    @classmethod
    def make_direct(cls):
        return Lighttpd(cls.place, cls.php.socket, "direct")

    def test_processes(self):
        self.assertEqual(len(self.front.weirs()), 4)


class ApacheProxyReuse(ChunkTests, FrontTests, Case):
    needs = ("apache2",)
    tries = 500         # what can go wrong here, does so once in a hundred times

    @classmethod
    def make_front(cls):
        return ApacheProxy(cls.place, cls.weir.socket)

    @classmethod
    def make_direct(cls):
        return ApacheProxy(cls.place, cls.php.socket, "direct", reuse=False)


class ApacheProxyNoReuse(ChunkTests, FrontTests, Case):
    needs = ("apache2",)
    with_redis = True

    @classmethod
    def make_front(cls):
        return ApacheProxy(cls.place, cls.weir.socket, reuse=False)

    @classmethod
    def make_direct(cls):
        return ApacheProxy(cls.place, cls.php.socket, "direct", reuse=False)


class ApacheModFcgid(ChunkTests, FrontTests, Case):
    needs = ("apache2",)
    with_redis = True
    tries = 20
    seeks_script = False

    @classmethod
    def is_spawned(cls):
        return True

    @classmethod
    def make_front(cls):
        return ApacheFcgid(cls.place, cls.weir.command())

    @classmethod
    def make_direct(cls):
        passthrough = shutil.copy(os.path.join(os.path.dirname(weirtest.__file__),
                                               "passthrough.py"), cls.place.sub("bin"))
        os.chmod(passthrough, 0o755)
        return ApacheFcgid(cls.place, ["/usr/bin/python3", "-B", passthrough, cls.php.socket],
                           "direct")


if __name__ == "__main__":
    weirtest.main()

#!/usr/bin/python3 -B
"""Further web servers, and further ways of those that test_fronts.py has: each with its file of
etc/, in front of weir in front of php-fpm."""

import hashlib
import json
import os

import weirtest
from weirtest import (ApacheProxyPass, Caddy, Case, HAProxy, LighttpdCgi, PhpFpm, Redis, Weir,
                      Zeros)

ROUTES = """\
[limit one]
policy = 1/1d

[route one]
match = */limited.php
limit = one
headers = x-ratelimit

[route spelt]
script = /cookies.php
limit  = one

[route default]
match = *
"""

MIB = 1024 * 1024


class MoreFrontTests:
    """The tests. Each class below is a web server."""

    with_redis = False
    is_started_by_front = False
    below = ""          # where the application's URLs begin
    chunked = 3 * MIB   # of an upload in chunks

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.php = cls.start_for_class(PhpFpm(cls.place))
        redis = cls.start_for_class(Redis(cls.place)) if cls.with_redis else None
        cls.weir = Weir(cls.place, cls.php, ROUTES, redis=redis, spawned=cls.is_started_by_front)
        if not cls.is_started_by_front:
            cls.start_for_class(cls.weir)
        cls.front = cls.start_for_class(cls.make_front())

    @classmethod
    def make_front(cls):
        raise NotImplementedError

    def ask(self, path, *args, **how):
        return self.front.ask(self.below + path, *args, **how)

    def exhaust(self):
        answers = [self.ask("/limited.php").status for _ in range(2)]
        self.assertEqual(answers[-1], 429)

    def assert_hashed(self, body, **how):
        answer = self.ask("/hash.php", "POST", body=body, **how)
        self.assertEqual(answer.status, 200)
        self.assertEqual(json.loads(answer.text), {
            "length": len(body), "sha256": hashlib.sha256(body).hexdigest()})

    def test_get_and_head(self):
        answer = self.ask("/index.php?x=1")
        self.assertEqual((answer.status, answer.text), (200, "hello GET\n"))
        self.assertTrue(answer.is_whole)
        answer = self.ask("/index.php", "HEAD")
        self.assertEqual((answer.status, answer["X-App"], answer.body), (200, "yes", b""))

    def test_uploads(self):
        body = os.urandom(3 * MIB)
        self.assert_hashed(body)
        self.assert_hashed(body[:self.chunked], chunked=True)

    def test_download(self):
        answer = self.ask("/download.php?mib=20", keep_body=False)
        self.assertEqual((answer.status, answer.length, answer.is_whole), (200, 20 * MIB, True))

    def test_application_sees_its_request(self):
        seen = json.loads(self.ask("/server.php?x=1", fields=[("Proxy", "evil.test:80")]).text)
        self.assertEqual(seen["QUERY_STRING"], "x=1")
        self.assertEqual(seen["REMOTE_ADDR"], "127.0.0.1")
        self.assertEqual(seen["SCRIPT_FILENAME"], self.place.documents + "/server.php")
        self.assertNotIn("HTTP_PROXY", seen)

    def test_path_info(self):
        seen = json.loads(self.ask("/server.php/a/b").text)
        self.assertEqual((seen["PATH_INFO"], seen["SCRIPT_FILENAME"]),
                         ("/a/b", self.place.documents + "/server.php"))

    def test_rejection(self):
        self.exhaust()
        for method, body in (("GET", None), ("HEAD", None), ("POST", b"x")):
            answer = self.ask("/limited.php", method, body=body)
            self.assertEqual((answer.status, answer.reason), (429, "Too Many Requests"))
            self.assertTrue(86000 < int(answer["Retry-After"]) <= 86400, answer)
            self.assertEqual(answer.all("X-RateLimit-Remaining"), ["0"])
            self.assertEqual(answer["Cache-Control"], "no-store")
        self.assertIn("Too many requests.", self.ask("/limited.php").text)
        self.assertEqual(self.ask("/limited.php/behind").status, 429)

    def test_rejected_uploads(self):
        self.exhaust()
        seen = {}
        for length in (1000, 60000, 10 * MIB):
            for _ in range(10):
                rejected = self.ask("/limited.php", "POST", body=Zeros(length))
                outcome = (length, rejected.status, self.ask("/index.php").status)
                seen[outcome] = seen.get(outcome, 0) + 1
        self.assertEqual(seen, {(length, 429, 200): 10 for length in (1000, 60000, 10 * MIB)})


class SpellingTests:
    """Where the application is at the root, so that a pattern can say where a script is."""

    def test_no_spelling_leads_around_a_script(self):
        answers = [self.ask("/cookies.php").status for _ in range(2)]
        self.assertEqual(answers[-1], 429)
        for path in ("//cookies.php", "/./cookies.php", "/.//cookies.php", "//cookies.php/x",
                     "/www/../cookies.php", "/%63ookies.php", "/%2e/cookies.php",
                     "/cookies.php/../index.php", "/cookies.php/..//x.html"):
            answer = self.ask(path)
            # The last two are other pages, where the web server resolves them itself.
            if answer.text != "hello GET\n":
                self.assertNotEqual(answer.status, 200, path)


class OfHAProxy(SpellingTests, MoreFrontTests, Case):
    needs = ("haproxy",)

    @classmethod
    def make_front(cls):
        return HAProxy(cls.place, cls.weir.socket)

    chunked = 10000

    def test_large_upload_in_chunks_is_refused_by_the_front(self):
        answer = self.ask("/hash.php", "POST", body=Zeros(100000), chunked=True)
        self.assertEqual((answer.status, answer["Retry-After"]), (400, None))
        self.assertIn("Your browser sent an invalid request.", answer.text)


class OfCaddy(SpellingTests, MoreFrontTests, Case):
    needs = ("caddy",)

    @classmethod
    def make_front(cls):
        return Caddy(cls.place, cls.weir.socket)


class OfApacheProxyPass(MoreFrontTests, Case):
    needs = ("apache2",)
    below = "/app"

    @classmethod
    def make_front(cls):
        return ApacheProxyPass(cls.place, cls.weir.socket)

    def test_php_by_suffix_beside_it(self):
        self.assertEqual(self.front.ask("/index.php").text, "hello GET\n")


class OfLighttpdCgi(MoreFrontTests, Case):
    needs = ("lighttpd",)
    with_redis = True
    is_started_by_front = True

    @classmethod
    def make_front(cls):
        return LighttpdCgi(cls.place, cls.weir)


class OfLighttpdCgiAlone(OfLighttpdCgi):
    with_redis = False


if __name__ == "__main__":
    weirtest.main()

#!/usr/bin/python3 -B
"""Web servers that ask weir and serve by themselves, beside lighttpd (test_authorizer.py): Apache's
two modules and nginx's auth_request. Each makes something else of an answer, and what the client
sees is right all the same: 429 with Retry-After, 503, 403, and nothing of weir's on what it admits
but the rate-limit fields."""

import base64
import os

import weirtest
from weirtest import (ApacheAuthnz, ApacheFcgidAuthorizer, ApacheFcgidLogin, Case, NginxAuthRequest,
                      Redis, Weir, Zeros, process)

ROUTES = """\
[backend asked]
type = none

[limit three]
policy = 3/1d

[limit hundred]
policy = 100/1d

[limit shut]
policy = 1/1d

[override me]
limit = shut
for   = ip 127.0.0.1
block = yes

[route three]
match         = /api/three.txt
limit         = three
headers       = x-ratelimit
reject_header = Access-Control-Allow-Origin: *

[route post]
match = POST /api/
limit = hundred

[route blocked]
match = /api/blocked.txt
limit = shut

[route default]
match = *
"""

# u:p, as htpasswd -s has it.
PASSWORD_FILE = "u:{SHA}UWuXg/ylF+7L0dBk2i0WUxCxl1k=\n"

FILES = ("three.txt", "other.txt", "blocked.txt")


class Nowhere:
    """A Redis that is not there."""

    def __init__(self, place):
        self.keys = f"server = unix:{place.socket('nowhere')}"


class AskingTests:
    with_redis = False
    page = ""               # what stands in the body of a rejection
    passes_route_fields = True
    kind = ""               # as `front` in weir.ini names it

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        os.mkdir(cls.place.sub("www", "api"))
        os.chmod(cls.place.sub("www", "api"), 0o755)
        for name in FILES:
            with open(cls.place.sub("www", "api", name), "w", encoding="utf-8") as file:
                file.write("served\n")
            os.chmod(file.name, 0o644)

    def setUp(self):
        self.redis = self.start(Redis(self.place)) if self.with_redis else None
        self.front = None

    def serve(self, front="auto", redis=None, more=""):
        self.front = self.make_front(f"[route]\nfront = {front}\n{more}\n{ROUTES}",
                                     redis or self.redis)
        self.start(self.front)

    def make_weir(self, rest, redis, **how):
        return Weir(self.place, None, rest, redis=redis, name="weir-" + self._testMethodName, **how)

    def make_front(self, rest, redis):
        """Weir, started or to be started by it, and the web server before it."""
        raise NotImplementedError

    def assert_rejects(self):
        for _ in range(3):
            self.assertEqual(self.front.ask("/api/three.txt").status, 200)
        answer = self.front.ask("/api/three.txt")
        self.assertEqual((answer.status, answer.reason), (429, "Too Many Requests"))
        return answer

    def test_admitted(self):
        self.serve()
        answer = self.front.ask("/api/three.txt")
        self.assertEqual((answer.status, answer.text), (200, "served\n"))
        self.assertEqual(answer.all("X-RateLimit-Limit"), ["3"])
        self.assertEqual(answer.all("X-RateLimit-Remaining"), ["2"])
        answer = self.front.ask("/api/other.txt")
        self.assertEqual((answer.status, answer.text), (200, "served\n"))
        self.assertEqual(answer.all("Content-Length"), ["7"])
        for name in ("X-RateLimit-Limit", "Cache-Control", "Retry-After", "Weir-Status",
                     "Variable-WEIR_STATUS"):
            self.assertEqual(answer.all(name), [], name)

    def test_rejected(self):
        self.serve()
        answer = self.assert_rejects()
        # One of three comes back every eight hours.
        self.assertTrue(28700 < int(answer["Retry-After"]) <= 28800, answer)
        self.assertEqual(len(answer.all("Retry-After")), 1)
        self.assertEqual(answer.all("X-RateLimit-Limit"), ["3"])
        self.assertEqual(answer.all("X-RateLimit-Remaining"), ["0"])
        self.assertEqual(answer.all("Cache-Control"), ["no-store"])
        if self.passes_route_fields:
            self.assertEqual(answer.all("Access-Control-Allow-Origin"), ["*"])
        self.assertTrue(answer.is_whole)
        self.assertIn(self.page, answer.text)
        answer = self.front.ask("/api/three.txt", "HEAD")
        self.assertEqual((answer.status, answer.body), (429, b""))
        self.assertIsNotNone(answer["Retry-After"])
        self.assertEqual(self.front.ask("/api/other.txt").status, 200)

    def test_blocked(self):
        self.serve()
        answer = self.front.ask("/api/blocked.txt")
        self.assertEqual((answer.status, answer["Retry-After"]), (403, None))

    def test_uploads(self):
        """A question has no body, whatever the request has. Files take no POST: 405."""
        self.serve()
        for length, count in ((10, 60), (100000, 50)):
            seen = [self.front.ask("/api/other.txt", "POST", body=Zeros(length)).status
                    for _ in range(count)]
        self.assertEqual(seen, 40 * [seen[0]] + 10 * [429])
        self.assertIn(seen[0], (200, 405))

    def test_store_away(self):
        self.serve(redis=Nowhere(self.place), more="store_down = reject")
        answer = self.front.ask("/api/three.txt")
        self.assertEqual(answer.status, 503)
        self.assertGreaterEqual(int(answer["Retry-After"]), 1)

    def test_front_is_named(self):
        self.serve(front=self.kind)
        self.assert_rejects()


class OthersWay:
    """What comes of an answer that is meant for another web server."""

    def test_answer_for_another_front(self):
        self.serve(front="lighttpd")
        seen = [self.front.ask("/api/three.txt").status for _ in range(4)]
        self.assertEqual(seen, 3 * [200] + [self.status_of_another])


class OfModAuthnz(AskingTests, Case):
    needs = ("apache2",)
    kind = "mod_authnz"
    page = "Too many requests."

    def make_front(self, rest, redis):
        port = process.free_port()
        self.start(self.make_weir(rest, redis, weir=f"listen = tcp:127.0.0.1:{port}"))
        return ApacheAuthnz(self.place, port)


class Spawned(Weir):
    """With a port as descriptor 0, and not by Apache."""

    def __init__(self, port, *args, **how):
        super().__init__(*args, spawned=True, **how)
        self._port = port

    def command(self):
        return ["spawn-fcgi", "-n", "-a", "127.0.0.1", "-p", str(self._port), "--",
                *super().command()]


class OfModAuthnzBySpawnFcgi(OfModAuthnz):
    needs = ("apache2", "spawn-fcgi")

    def make_front(self, rest, redis):
        port = process.free_port()
        self.start(Spawned(port, self.place, None, rest, redis=redis,
                           name="weir-" + self._testMethodName))
        return ApacheAuthnz(self.place, port)


class OfModFcgid(OthersWay, AskingTests, Case):
    needs = ("apache2",)
    with_redis = True
    kind = "mod_fcgid"
    page = "<h1>Too Many Requests</h1>"
    status_of_another = 401

    def make_front(self, rest, redis):
        return ApacheFcgidAuthorizer(self.place,
                                     self.make_weir(rest, redis, spawned=True).command())

    def test_rules_of_a_directory(self):
        """Those of an .htaccess file stand beside the ones that make the answer."""
        name = self.place.sub("www", "api", ".htaccess")
        with open(name, "w", encoding="ascii") as file:
            file.write("RewriteEngine On\nRewriteRule ^none$ other.txt [L]\n")
        self.addCleanup(os.remove, name)
        os.chmod(name, 0o644)
        self.serve()
        self.assert_rejects()

    # What stands in front of the question, with a login that Apache checks itself.
    login = ('AuthType Basic\n\tAuthName weir\n\tAuthBasicProvider file\n\t'
             'AuthUserFile {passwords}\n\tRequire valid-user\n\t')

    def serve_behind_login(self, asking):
        passwords = self.place.write("passwords", PASSWORD_FILE)
        weir = self.make_weir(ROUTES, self.redis, spawned=True)
        self.front = self.start(ApacheFcgidLogin(
            self.place, weir.command(), self.login.format(passwords=passwords) + asking))

    def seen(self, count, login="u:p"):
        credentials = base64.b64encode(login.encode()).decode()
        return [self.front.ask("/api/three.txt",
                               fields=[("Authorization", "Basic " + credentials)]).status
                for _ in range(count)]

    def test_authorizer(self):
        """Where somebody logs in; who does not is no question for weir."""
        self.serve_behind_login("FcgidAuthorizer")
        self.assertEqual(self.seen(2, "u:wrong"), [401, 401])
        self.assertEqual(self.seen(4), 3 * [200] + [429])

    def test_no_password_is_right(self):
        self.serve_behind_login("FcgidAuthenticator")
        self.assertEqual(self.seen(2, "u:wrong"), [401, 401])


class OfNginx(OthersWay, AskingTests, Case):
    needs = ("nginx",)
    kind = "nginx"
    page = "<h1>429 Too Many Requests</h1>"
    passes_route_fields = False
    status_of_another = 500

    def make_front(self, rest, redis):
        return NginxAuthRequest(self.place, self.start(self.make_weir(rest, redis)).socket)


if __name__ == "__main__":
    weirtest.main()

#!/usr/bin/python3 -B
"""lighttpd asks weir as an authorizer, and serves what it admits itself: here with php-fpm, which
weir does not know of."""

import weirtest
from weirtest import Case, LighttpdAuthorizer, PhpFpm, Redis, Weir, Zeros

ROUTES = """\
[backend asked]
type = none

[limit three]
policy = 3/1d

[limit hundred]
policy = 100/1d

[route three]
match = /api/index.php
limit = three
backend = asked
reject_header = Access-Control-Allow-Origin: *

[route uploads]
match = /api/hash.php
limit = hundred
backend = asked

[route default]
match = *
backend = asked
"""


class AuthorizerTests:
    with_redis = False
    needs = ("lighttpd",)

    def setUp(self):
        php = self.start(PhpFpm(self.place))
        redis = self.start(Redis(self.place)) if self.with_redis else None
        self.weir = self.start(Weir(self.place, php, ROUTES, redis=redis,
                                    name="weir-" + self._testMethodName))
        self.front = self.start(LighttpdAuthorizer(self.place, self.weir.socket, php.socket))
        # The responder's URLs lie below /api/.
        self.place.link_documents("api")

    def tearDown(self):
        self.place.unlink_documents("api")

    def test_admitted(self):
        answer = self.front.ask("/api/index.php")
        self.assertEqual((answer.status, answer.text), (200, "hello GET\n"))

    def test_rejected(self):
        answers = [self.front.ask("/api/index.php") for _ in range(5)]
        self.assertEqual([answer.status for answer in answers], [200, 200, 200, 429, 429])
        answer = answers[-1]
        self.assertEqual(answer.reason, "Too Many Requests")
        # One of three comes back every eight hours.
        self.assertTrue(28700 < int(answer["Retry-After"]) <= 28800, answer)
        self.assertEqual(answer.all("X-RateLimit-Limit"), ["3"])
        self.assertEqual(answer.all("X-RateLimit-Remaining"), ["0"])
        self.assertEqual(answer["Access-Control-Allow-Origin"], "*")
        self.assertEqual(answer["Cache-Control"], "no-store")
        self.assertIn("Too many requests.", answer.text)

    def test_body_forms(self):
        for _ in range(3):
            self.front.ask("/api/index.php")
        for accept, kind, word in (
                ("text/html", "text/html; charset=utf-8", "<h1>Too Many Requests</h1>"),
                ("application/json", "application/problem+json", '"violated-policies":["three"]'),
                ("*/*", "text/plain; charset=utf-8", "Too many requests.")):
            with self.subTest(accept=accept):
                answer = self.front.ask("/api/index.php", fields=[("Accept", accept)])
                self.assertEqual((answer.status, answer["Content-Type"]), (429, kind))
                self.assertIn(word, answer.text)

    def test_head_is_rejected_too(self):
        for _ in range(3):
            self.front.ask("/api/index.php")
        answer = self.front.ask("/api/index.php", "HEAD")
        self.assertEqual((answer.status, answer.body), (429, b""))
        self.assertIsNotNone(answer["Retry-After"])

    def test_posts(self):
        """lighttpd sends an authorizer no end of body with a POST: it must not be waited for."""
        answers = [self.front.ask("/api/hash.php", "POST", body=Zeros(100000)).status
                   for _ in range(110)]
        self.assertEqual(answers, 100 * [200] + 10 * [429])


class OnMemory(AuthorizerTests, Case):
    pass


class OnRedis(AuthorizerTests, Case):
    with_redis = True


if __name__ == "__main__":
    weirtest.main()

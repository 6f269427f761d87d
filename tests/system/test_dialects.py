#!/usr/bin/python3 -B
"""What clients are told: rate-limit fields in each dialect, on 200 and on 429, through real web
servers; Retry-After with jitter; the application's own fields; pages for the rejected; and the
algorithms whose waits follow from the clock."""

import datetime
import email.utils
import json
import time

import weirtest
from weirtest import Case, Lighttpd, Nginx, PhpFpm, Redis, Weir

# Each test has an identity of its own, by a parameter of the query.
ROUTES = """\
[limit page]
identity   = param c
on_missing = share
policy     = 3/1h
policy     = 100/1d

[limit day]
identity   = param c
on_missing = share
policy     = 2/day calendar

[limit window]
identity   = param c
on_missing = share
policy     = 4/1h sliding-window

[limit log]
identity   = param c
on_missing = share
policy     = 2/2s sliding-log

[route x]
match   = /index.php/x
limit   = page
headers = x-ratelimit

[route epoch]
match   = /index.php/epoch
limit   = page
headers = x-ratelimit-epoch

[route draft]
match   = /index.php/draft
limit   = page
headers = ratelimit

[route both]
match   = /index.php/both
limit   = page
headers = x-ratelimit, ratelimit

[route seven]
match   = /index.php/seven
limit   = page
headers = ratelimit-07

[route six]
match   = /index.php/six
limit   = page
headers = ratelimit-06

[route silent]
match = /index.php/silent
limit = page

[route jitter]
match        = /index.php/jitter
limit        = page
retry_jitter = 50%

[route replace]
match   = /own_limits.php/replace
limit   = page
headers = x-ratelimit

[route keep]
match       = /own_limits.php/keep
limit       = page
headers     = x-ratelimit
own_headers = keep

[route nothing]
match = /own_limits.php/nothing
limit = page

[route own]
match         = /index.php/page
limit         = page
reject_page   = {page}
reject_header = X-Why: too many

[route cost]
match = /index.php/cost
limit = page
cost  = param n max 50

[route day]
match = /index.php/day
limit = day

[route window]
match = /index.php/window
limit = window

[route log]
match = /index.php/log
limit = log

[route default]
match = *
"""

FIELDS = ("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "RateLimit-Policy",
          "RateLimit", "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset")
PAGE = "<!DOCTYPE html><title>Later</title><p>Zu viele Anfragen \u2013 sp\u00e4ter wieder.</p>\n"


class DialectTests:
    with_redis = False
    needs = ("lighttpd", "nginx")

    @classmethod
    def make_front(cls, socket):
        raise NotImplementedError

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        php = cls.start_for_class(PhpFpm(cls.place))
        redis = cls.start_for_class(Redis(cls.place)) if cls.with_redis else None
        page = cls.place.write("later.html", PAGE)
        weir = cls.start_for_class(Weir(cls.place, php, ROUTES.format(page=page), redis=redis))
        cls.front = cls.start_for_class(cls.make_front(weir.socket))

    def ask(self, path, who="", **how):
        """By default the identity is the test's."""
        return self.front.ask(f"{path}{'&' if '?' in path else '?'}c={self._testMethodName}{who}",
                              **how)

    def told(self, path, count=4):
        """The fields of so many answers; the last one is a 429."""
        answers = [self.ask(path) for _ in range(count)]
        self.assertEqual([answer.status for answer in answers], (count - 1) * [200] + [429])
        self.assertTrue(all(answer.is_whole for answer in answers))
        self.assertIsNone(answers[0]["Retry-After"])
        self.assert_near(answers[-1]["Retry-After"], 1200)
        for answer in answers:
            for name in FIELDS:
                self.assertLessEqual(len(answer.all(name)), 1, answer)
        return [{name: answer[name] for name in FIELDS if answer[name] is not None}
                for answer in (answers[0], answers[-1])]

    def assert_near(self, text, expected, slack=5):
        """A number of seconds that shrinks while the test goes on."""
        self.assertLessEqual(int(text), expected)
        self.assertGreaterEqual(int(text), expected - slack)

    def test_x_ratelimit(self):
        admitted, rejected = self.told("/index.php/x")
        self.assertEqual(set(admitted), set(FIELDS[:3]))
        self.assertEqual((admitted["X-RateLimit-Limit"], admitted["X-RateLimit-Remaining"]),
                         ("100", "99"))
        self.assert_near(admitted["X-RateLimit-Reset"], 864)
        self.assertEqual((rejected["X-RateLimit-Limit"], rejected["X-RateLimit-Remaining"]),
                         ("3", "0"))
        self.assert_near(rejected["X-RateLimit-Reset"], 3600)

    def test_x_ratelimit_epoch(self):
        admitted, rejected = self.told("/index.php/epoch")
        for fields, wait in ((admitted, 864), (rejected, 3600)):
            self.assertEqual(set(fields), set(FIELDS[:3]))
            self.assertLess(abs(int(fields["X-RateLimit-Reset"]) - time.time() - wait), 6)

    def test_ratelimit(self):
        admitted, rejected = self.told("/index.php/draft")
        policy = '"page-1h";q=3;w=3600, "page-1d";q=100;w=86400'
        for fields in (admitted, rejected):
            self.assertEqual(set(fields), {"RateLimit-Policy", "RateLimit"})
            self.assertEqual(fields["RateLimit-Policy"], policy)
        self.assertRegex(admitted["RateLimit"],
                         r'^"page-1h";r=2;t=1[12]\d\d, "page-1d";r=99;t=8[56]\d$')
        self.assertRegex(rejected["RateLimit"], r'^"page-1h";r=0;t=1[12]\d\d$')

    def test_two_dialects(self):
        for fields in self.told("/index.php/both"):
            self.assertEqual(set(fields), set(FIELDS[:5]))

    def test_ratelimit_07(self):
        admitted, rejected = self.told("/index.php/seven")
        self.assertEqual(admitted["RateLimit-Policy"], "3;w=3600, 100;w=86400")
        self.assertRegex(admitted["RateLimit"], r"^limit=3, remaining=2, reset=1[12]\d\d$")
        self.assertRegex(rejected["RateLimit"], r"^limit=3, remaining=0, reset=1[12]\d\d$")

    def test_ratelimit_06(self):
        admitted, rejected = self.told("/index.php/six")
        for fields, remaining in ((admitted, "2"), (rejected, "0")):
            self.assertEqual(set(fields), {"RateLimit-Policy", *FIELDS[5:]})
            self.assertEqual((fields["RateLimit-Limit"], fields["RateLimit-Remaining"]),
                             ("3", remaining))
            self.assert_near(fields["RateLimit-Reset"], 1200)

    def test_none(self):
        admitted, rejected = self.told("/index.php/silent")
        self.assertEqual((set(admitted), set(rejected)), (set(), set(FIELDS[:3])))

    def test_jitter_is_never_early(self):
        for _ in range(3):
            self.ask("/index.php/jitter")
        waits = [int(self.ask("/index.php/jitter")["Retry-After"]) for _ in range(40)]
        self.say(f"from {min(waits)} to {max(waits)} s")
        self.assertGreaterEqual(min(waits), 1190)
        self.assertLessEqual(max(waits), 1800)
        # That 40 of 600 are all among the first 100 happens once in 10^31.
        self.assertGreater(max(waits), 1300)
        self.assertGreater(len(set(waits)), 5)

    def test_own_fields_are_replaced(self):
        answer = self.ask("/own_limits.php/replace")
        self.assertEqual((answer.status, answer.body), (200, b"own\n"))
        self.assertEqual(answer.all("X-RateLimit-Limit"), ["100"])
        self.assertEqual(answer.all("RateLimit"), [])

    def test_own_fields_are_kept(self):
        answer = self.ask("/own_limits.php/keep")
        self.assertEqual(answer.all("X-RateLimit-Limit"), ["999"])
        self.assertEqual(answer.all("X-RateLimit-Remaining"), ["998"])
        self.assertEqual(answer.all("X-RateLimit-Reset"), [])
        self.assertEqual(answer.all("RateLimit"), ['"own";r=998;t=60'])

    def test_own_fields_stay_where_nothing_is_told(self):
        answer = self.ask("/own_limits.php/nothing")
        self.assertEqual(answer.all("X-RateLimit-Limit"), ["999"])
        self.assertEqual(answer.all("RateLimit"), ['"own";r=998;t=60'])

    def test_page_of_the_route(self):
        for _ in range(3):
            self.assertIsNone(self.ask("/index.php/page")["X-Why"])
        answer = self.ask("/index.php/page", fields=[("Accept", "application/json")])
        self.assertEqual((answer.status, answer.text, answer["X-Why"]), (429, PAGE, "too many"))
        self.assertRegex(answer["Content-Type"], r"(?i)^text/html; ?charset=utf-8$")
        self.assert_near(answer["Retry-After"], 1200)

    def test_problem_names_the_policy(self):
        for _ in range(3):
            self.ask("/index.php/silent")
        answer = self.ask("/index.php/silent", fields=[("Accept", "application/json")])
        self.assertEqual((answer.status, answer["Content-Type"]),
                         (429, "application/problem+json"))
        problem = json.loads(answer.text)
        self.assertEqual((problem["status"], problem["violated-policies"]), (429, ["page-1h"]))

    def test_cost_above_burst(self):
        answer = self.ask("/index.php/cost?n=4", fields=[("Accept", "application/json")])
        self.assertEqual((answer.status, answer["Retry-After"]), (429, None))
        self.assertEqual(json.loads(answer.text)["reason"], "cost-exceeds-burst")
        self.assertEqual(self.ask("/index.php/cost?n=3").status, 200)

    def test_calendar(self):
        # The answer's own date decides which day it was.
        for attempt in range(2):
            answers = [self.ask("/index.php/day", f"-{attempt}") for _ in range(3)]
            days = {email.utils.parsedate(answer["Date"])[2] for answer in answers}
            if len(days) == 1:
                break
        self.assertEqual([answer.status for answer in answers], [200, 200, 429])
        now = datetime.datetime.now(datetime.timezone.utc)
        midnight = datetime.datetime.combine(now.date() + datetime.timedelta(days=1),
                                             datetime.time(), datetime.timezone.utc)
        self.assertLess(abs(int(answers[-1]["Retry-After"]) - (midnight - now).seconds), 5)

    def test_sliding_window(self):
        answers = [self.ask("/index.php/window") for _ in range(5)]
        self.assertEqual([answer.status for answer in answers], 4 * [200] + [429])
        wait = int(answers[-1]["Retry-After"])
        self.assertGreaterEqual(wait, 1)
        self.assertLessEqual(wait, 3600 + 900)

    def test_sliding_log_admits_after_its_wait(self):
        answers = [self.ask("/index.php/log") for _ in range(3)]
        self.assertEqual([answer.status for answer in answers], [200, 200, 429])
        self.assertIn(answers[-1]["Retry-After"], ("1", "2"))
        # To wait so long, and no longer, is what is promised about.
        time.sleep(int(answers[-1]["Retry-After"]))
        self.assertEqual(self.ask("/index.php/log").status, 200)


class ThroughNginx(DialectTests, Case):
    with_redis = True

    @classmethod
    def make_front(cls, socket):
        return Nginx(cls.place, socket)


class ThroughLighttpd(DialectTests, Case):
    @classmethod
    def make_front(cls, socket):
        return Lighttpd(cls.place, socket)


if __name__ == "__main__":
    weirtest.main()

#!/usr/bin/python3 -B
"""What the engine promises as a whole, through real servers: plans that are reloaded under load,
floods that Redis hardly sees, and no more identities than are allowed."""

import os
import re
import time

import weirtest
from weirtest import Case, Load, Nginx, PhpFpm, Redis, Weir, attempts, fcgi, wait_until

OVERRIDES = """\
[limit api]
identity = header X-API-Key known, ip
policy   = 1/1d

[override gold]
limit  = api
for    = header X-API-Key @{file}
policy = {count}/1d

[backend none]
type = none

[route api]
match   = /index.php/api
limit   = api
backend = none
front   = lighttpd

[route default]
match   = *
backend = none
"""

KEYS = 100000


class Overrides(Case):
    needs = ("nginx",)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.php = cls.start_for_class(PhpFpm(cls.place))

    def configure(self, count, first=0):
        file = self.place.write("keys", "".join(f"key-{n}\n" for n in range(first, first + KEYS)))
        return OVERRIDES.format(file=file, count=count)

    def renew(self):
        self.doCleanups()

    def ask(self, front, key):
        return front.ask("/index.php/api", fields=[("X-API-Key", key)]).status

    @attempts(3)
    def test_many_plans_are_reloaded_without_a_pause(self):
        weir = self.start(Weir(self.place, self.php, self.configure(2), name="weir-plans"))
        front = self.start(Nginx(self.place, weir.socket))
        self.assertEqual([self.ask(front, f"key-{KEYS - 1}") for _ in range(3)], [200, 200, 429])
        load = self.run_load(Load(weir.socket, rate=300, seconds=60, marks=True, keep=True))
        load.mark("before")
        load.go_on(2)
        load.mark("reloads")
        for number in range(3):
            before = weir.metrics().get("weir_reloads_total", result="done")
            weir.configure(self.configure(3, first=1 + number))
            weir.reload()
            wait_until(lambda: weir.metrics().get("weir_reloads_total", result="done") ==
                       before + 1, "the plans are read anew", 20)
        phases = load.end()
        for phase in phases:
            self.say(str(phase))
            self.assertEqual((set(phase.status) - {200}, phase.failed), (set(), {}))
        # What is there and new is known; what was taken out is not.
        self.assertEqual(self.ask(front, f"key-{KEYS - 1}"), 200)
        self.assertEqual([self.ask(front, f"key-{KEYS + 2}") for _ in range(4)],
                         [200, 200, 200, 429])
        self.assertEqual([self.ask(front, "key-0") for _ in range(2)], [200, 429])
        self.assert_fast(phases[-1].max, 100000, f"the longest answer while {KEYS} keys are read")


FLOOD = """\
[limit page]
policy = {policy}

[backend none]
type = none

[route default]
match   = *
limit   = page
backend = none
"""


CLIENTS = 8


class Flood(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.php = cls.start_for_class(PhpFpm(cls.place))

    def setUp(self):
        self.redis = self.start(Redis(self.place))
        self.name = "weir-" + self._testMethodName

    def start_weir(self, policy, threads=1):
        return self.start(Weir(self.place, self.php, FLOOD.format(policy=policy),
                               weir=f"threads = {threads}", redis=self.redis, name=self.name))

    def checks(self):
        stats = self.redis.call("INFO", "commandstats").decode()
        return sum(int(calls) for calls in re.findall(r"cmdstat_eval\w*:calls=(\d+)", stats))

    @staticmethod
    def ask(weir):
        """As the flood's client."""
        return fcgi.ask(weir.socket, fcgi.usual_params("/", REMOTE_ADDR="10.0.0.0")).status

    def flood(self, weir, seconds):
        """At full speed; returns how many were answered, by status, and how long it took."""
        load = self.run_load(Load(weir.socket, clients=CLIENTS, requests=10000000, keep=True,
                                  marks=True))
        begun = time.monotonic()
        load.go_on(seconds)
        load.mark("end")
        phases = load.finish()
        status = {}
        for phase in phases:
            self.assertEqual(phase.failed, {})
            for code, count in phase.status.items():
                status[code] = status.get(code, 0) + count
        return status, time.monotonic() - begun

    def assert_few_checks(self, policy, refills_per_s, *, threads=1, seconds=2):
        """One for each refill, and one a second, of each thread: each has a cache of its own. What
        is refilled reaches a client all the same: it stays in the bucket until somebody asks."""
        weir = self.start_weir(policy, threads)
        while self.ask(weir) == 200:
            pass
        before = self.checks()
        status, passed = self.flood(weir, seconds)
        checks = self.checks() - before
        admitted = status.get(200, 0)
        allowed = threads * (admitted + passed + 1)
        if threads > 1:
            allowed += CLIENTS  # a thread that knows nothing is asked by all at once
        self.say(f"{policy}, {threads} threads: {sum(status.values())} requests in {passed:.1f} s,"
                 f" {status}; {checks} checks (allowed {allowed:.0f})")
        self.assertGreater(status[429], 1000)
        self.assertLessEqual(admitted, refills_per_s * (passed + 1) + 1)
        self.assertGreaterEqual(admitted, refills_per_s * seconds - 2)
        self.assertLessEqual(checks, allowed)

    def test_slow_bucket(self):
        self.assert_few_checks("5/1h", 0)

    def test_slow_bucket_and_two_threads(self):
        self.assert_few_checks("5/1h", 0, threads=2)

    def test_bucket_that_refills_meanwhile(self):
        self.assert_few_checks("10/1s", 10)

    def test_bucket_that_refills_meanwhile_and_two_threads(self):
        self.assert_few_checks("10/1s", 10, threads=2)

    def test_bucket_that_refills_often(self):
        self.assert_few_checks("100/1s", 100)

    def test_bucket_that_refills_often_and_two_threads(self):
        self.assert_few_checks("100/1s", 100, threads=2)

    def test_sliding_log(self):
        self.assert_few_checks("5/1h sliding-log", 0)

    def test_sliding_log_that_moves(self):
        self.assert_few_checks("10/1s sliding-log", 10)

    def test_reset_shows_within_a_second(self):
        weir = self.start_weir("5/1h")
        status, _ = self.flood(weir, 1)
        self.assertEqual(status[200], 5)
        load = self.run_load(Load(weir.socket, clients=4, requests=10000000, keep=True,
                                  marks=True))
        load.go_on(0.5)
        self.redis.call("FLUSHALL")
        load.go_on(1.2)
        load.mark("end")
        self.assertEqual(sum(phase.status.get(200, 0) for phase in load.finish()), 5)

    def test_reload_shows_at_once(self):
        weir = self.start_weir("5/1h")
        status, _ = self.flood(weir, 1)
        self.assertEqual(status[200], 5)
        weir.configure(FLOOD.format(policy="1000/1h"))
        weir.reload()
        wait_until(lambda: weir.metrics().get("weir_reloads_total", result="done") == 1,
                   "the reload is done")
        self.assertEqual(self.ask(weir), 200)

    def test_raised_rate_helps_who_is_exhausted(self):
        weir = self.start_weir("5/1d burst 5 name pace")
        status, _ = self.flood(weir, 1)
        self.assertEqual(status[200], 5)
        weir.configure(FLOOD.format(policy="20/1s burst 5 name pace"))
        weir.reload()
        wait_until(lambda: self.ask(weir) == 200, "a token has come at the new rate")


# 10**6 takes some minutes.
IDENTITIES = int(os.environ.get("WEIR_TEST_IDENTITIES", 100000))
REMEMBERED = 10000

MANY = f"""\
[limit page]
policy         = 3/1d
max_identities = {REMEMBERED}

[backend none]
type = none

[route default]
match   = *
limit   = page
backend = none
"""


class Identities(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.php = cls.start_for_class(PhpFpm(cls.place))

    @staticmethod
    def rss_kib(weir):
        with open(f"/proc/{weir.pid}/status", encoding="ascii") as file:
            return int(next(line for line in file if line.startswith("VmRSS:")).split()[1])

    def ask(self, weir, number):
        address = f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
        return fcgi.ask(weir.socket, fcgi.usual_params(REMOTE_ADDR=address)).status

    def run_through(self, weir, count):
        phase, = self.run_load(Load(weir.socket, clients=16, requests=count // 16, keep=True,
                                    vary=count)).finish(900)
        self.say(str(phase))
        self.assertEqual(phase.failed, {})
        return phase.status

    def test_redis_holds_no_more_than_allowed(self):
        redis = self.start(Redis(self.place))
        began = time.monotonic()
        weir = self.start(Weir(self.place, self.php, MANY, redis=redis, name="weir-many"))
        old = range(0, 2000, 100)
        for number in old:
            self.assertEqual([self.ask(weir, number) for _ in range(4)], [200, 200, 200, 429])
        self.run_through(weir, 2 * REMEMBERED)
        before = self.rss_kib(weir)
        status = self.run_through(weir, IDENTITIES)
        keys = int(redis.call("DBSIZE"))
        self.say(f"{keys} keys; memory {before} KiB, {self.rss_kib(weir)} KiB after {IDENTITIES}")
        # All that are allowed, the one that the others share, and that of the breaker's probe.
        self.assertIn(keys, (REMEMBERED + 1, REMEMBERED + 2))
        self.assert_small(self.rss_kib(weir) - before, 1024, f"growth with {IDENTITIES}")
        # Those that Redis knows are decided on their own buckets, old ones as they were.
        for number in old:
            self.assertEqual(self.ask(weir, number), 429)
        self.assertGreater(status[200], REMEMBERED // 2)
        # The others share one, which is exhausted.
        self.assertEqual(self.ask(weir, IDENTITIES + 7), 429)
        self.assertGreater(weir.metrics().get("weir_identities_overflowed_total", limit="page"), 0)
        # Once a minute; a million take longer than that.
        self.assertIn(len(weir.log_lines("max_identities")),
                      range(1, 2 + int((time.monotonic() - began) / 60)))


if __name__ == "__main__":
    weirtest.main(alone=True)

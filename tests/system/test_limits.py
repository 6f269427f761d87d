#!/usr/bin/python3 -B
"""How many are admitted: exactly as many as the limit says, whoever asks and through however many
processes of weir."""

import os
import signal

import weirtest
from weirtest import (ApacheFcgid, Case, Lighttpd, LighttpdSpawn, Load, Metrics, Nginx, PhpFpm,
                      Redis, Weir, ask, wait_until)

# Slow to refill: what comes back within a test is nothing.
ROUTES = """\
[limit hundred]
policy = 100/1d

[limit five]
policy = 5/1d

[limit three]
policy = 3/1d

[limit watched]
policy  = 3/1d
enforce = no

[route hundred]
match = /limited.php/hundred
limit = hundred

[route both]
match = /limited.php/both
limit = five, three

[route five]
match = /limited.php/five
limit = five

[route watched]
match = /limited.php/watched
limit = watched

[route shown]
match   = /limited.php/shown
limit   = three
headers = x-ratelimit

[route default]
match = *
"""


class LimitTests:
    with_redis = False
    needs = ("lighttpd", "nginx", "apache2")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.php = cls.start_for_class(PhpFpm(cls.place))

    def make_weir(self, **more):
        redis = self.start(Redis(self.place)) if self.with_redis else None
        return Weir(self.place, self.php, ROUTES, redis=redis, name="weir-" + self._testMethodName,
                    **more)

    def assert_hundred(self, address, **options):
        """20 clients with 20 requests each, all at once."""
        phase, = self.run_load(Load(address, clients=20, requests=20, path="/limited.php/hundred",
                                    **options)).finish()
        self.say(str(phase))
        self.assertEqual((phase.status, phase.failed), ({200: 100, 429: 300}, {}))

    def test_hundred_of_fastcgi_clients(self):
        weir = self.start(self.make_weir())
        self.assert_hundred(weir.socket, script=self.place.documents + "/limited.php")

    def test_hundred_of_kept_fastcgi_clients(self):
        weir = self.start(self.make_weir())
        self.assert_hundred(weir.socket, script=self.place.documents + "/limited.php", keep=True)

    def test_hundred_with_two_threads(self):
        weir = self.start(self.make_weir(weir="threads = 2"))
        self.assert_hundred(weir.socket, script=self.place.documents + "/limited.php")

    def test_hundred_through_nginx(self):
        weir = self.start(self.make_weir())
        self.assert_hundred(self.start(Nginx(self.place, weir.socket)).port)

    def test_hundred_through_lighttpd(self):
        weir = self.start(self.make_weir())
        self.assert_hundred(self.start(Lighttpd(self.place, weir.socket)).port)

    def test_hundred_through_four_processes(self):
        front = self.start(LighttpdSpawn(self.place, self.make_weir(spawned=True)))
        self.assertEqual(len(front.weirs()), 4)
        self.assert_hundred(front.port)

    def test_hundred_through_mod_fcgid(self):
        front = self.start(ApacheFcgid(self.place, self.make_weir(spawned=True).command()))
        self.assert_hundred(front.port)
        self.say(f"{len(front.weirs())} processes")
        self.assertGreater(len(front.weirs()), 1)

    def test_what_one_limit_rejects_costs_nothing_elsewhere(self):
        front = self.start(Nginx(self.place, self.start(self.make_weir()).socket))
        both = [front.ask("/limited.php/both").status for _ in range(10)]
        self.assertEqual(both, 3 * [200] + 7 * [429])
        five = [front.ask("/limited.php/five").status for _ in range(4)]
        self.assertEqual(five, 2 * [200] + 2 * [429])

    def test_limit_that_only_watches(self):
        weir = self.start(self.make_weir())
        front = self.start(Nginx(self.place, weir.socket))
        self.assertEqual([front.ask("/limited.php/watched").status for _ in range(10)], 10 * [200])
        metrics = weir.metrics()
        self.assertEqual(
            [metrics.get("weir_decisions_total", limit="watched", result=result)
             for result in ("admitted", "would_reject", "rejected")], [3, 7, 0])
        self.assertEqual(metrics.get("weir_requests_total", route="watched",
                                     outcome="would_reject"), 7)

    def test_headers_count_down(self):
        front = self.start(Nginx(self.place, self.start(self.make_weir()).socket))
        answers = [front.ask("/limited.php/shown") for _ in range(4)]
        self.assertEqual([(answer.status, answer["X-RateLimit-Limit"],
                           answer["X-RateLimit-Remaining"]) for answer in answers],
                         [(200, "3", "2"), (200, "3", "1"), (200, "3", "0"), (429, "3", "0")])
        self.assertIsNone(answers[0]["Retry-After"])


class OnMemory(LimitTests, Case):
    def test_two_daemons_share_one_state(self):
        """The counters outlive a process, and two that name one file count together."""
        first = self.start(Weir(self.place, self.php, ROUTES, name="first"))
        second = Weir(self.place, self.php, ROUTES, name="second")
        second.state = first.state
        second.configure(ROUTES)
        self.start(second)
        script = self.place.documents + "/limited.php"
        loads = [self.run_load(Load(weir.socket, clients=10, requests=20, script=script,
                                    path="/limited.php/hundred")) for weir in (first, second)]
        admitted = [load.finish()[0].status.get(200, 0) for load in loads]
        self.say(f"admitted by each: {admitted}")
        self.assertEqual(sum(admitted), 100)
        first.stop()
        first.start()
        phase, = self.run_load(Load(first.socket, clients=1, requests=10, script=script,
                                    path="/limited.php/hundred")).finish()
        self.assertEqual(phase.status, {429: 10})

    def test_killed_processes_keep_the_counts(self):
        front = self.start(LighttpdSpawn(self.place, self.make_weir(spawned=True)))
        self.assertEqual([front.ask("/limited.php/hundred").status for _ in range(60)], 60 * [200])
        for pid in front.weirs():
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: front.ask("/index.php").status == 200, "lighttpd starts others")
        phase, = self.run_load(Load(front.port, clients=10, requests=20,
                                    path="/limited.php/hundred")).finish()
        self.say(str(phase))
        self.assertEqual(phase.status.get(200), 40)

    def test_first_of_several_processes_has_the_metrics(self):
        weir = self.make_weir(spawned=True)
        front = self.start(LighttpdSpawn(self.place, weir))
        front.ask("/index.php")
        metrics = wait_until(lambda: Metrics(ask(weir.metrics_socket, "/metrics").text),
                             "one of the processes has the metrics")
        self.assertIn(("weir_breaker_open", frozenset()), metrics.series())


class OnRedis(LimitTests, Case):
    with_redis = True

    def test_two_hosts_share_one_redis(self):
        """As seen from Redis: two daemons with nothing in common but the server."""
        redis = self.start(Redis(self.place))
        weirs = [self.start(Weir(self.place, self.php, ROUTES, redis=redis, name=name))
                 for name in ("one", "two")]
        loads = [self.run_load(Load(weir.socket, clients=10, requests=20,
                                    script=self.place.documents + "/limited.php",
                                    path="/limited.php/hundred")) for weir in weirs]
        admitted = [load.finish()[0].status.get(200, 0) for load in loads]
        self.say(f"admitted by each: {admitted}")
        self.assertEqual(sum(admitted), 100)


if __name__ == "__main__":
    weirtest.main(alone=True)

#!/usr/bin/python3 -B
"""Redis stands still, dies, restarts and forgets its scripts, all of it under load and in front of
a real application. Clients see what the route's store_down says, at once after the first moments,
and nothing else. Each way to fail for each store_down stands in test_faults.py."""

import time

import weirtest
from weirtest import (Case, LighttpdSpawn, Load, PhpFpm, Redis, TooSlow, Weir, attempts, fcgi,
                      wait_until)

ROUTES = """\
[limit wide]
policy = 1000000/1s

[limit hundred]
policy = 100/1d

[route admit]
match = /admit
limit = wide
store_down = admit

[route local]
match = /local
limit = wide
store_down = local

[route reject]
match = /reject
limit = wide
store_down = reject

[route narrow]
match = /narrow
limit = hundred
store_down = local

[route default]
match = *
"""

RATE = 500
DEADLINE_AND_A_BIT_US = 170000
BREAKER_OPEN_US = 2000
RECOVERY_S = 2

OPENED = "the breaker is open"
CLOSED = "the breaker is closed"


class RedisFaults(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.php = cls.start_for_class(PhpFpm(cls.place))

    def setUp(self):
        self.redis = self.start(Redis(self.place))
        self.weir = self.start(Weir(self.place, self.php, ROUTES, redis=self.redis,
                                    name="weir-" + self._testMethodName))

    def load(self, path, server=None):
        """RATE requests a second until the test ends them, past their first second."""
        load = self.run_load(Load(
            (server or self.weir).socket, rate=RATE, seconds=60, marks=True, timeout=5, path=path,
            script=self.place.documents + "/index.php"))
        load.go_on(1)
        return load

    def is_open(self):
        return self.weir.metrics().get("weir_breaker_open") == 1

    def wait_open(self):
        wait_until(self.is_open, "the breaker opens", 5)

    def wait_closed(self):
        """Within RECOVERY_S of now."""
        began = time.monotonic()
        wait_until(lambda: not self.is_open(), "the breaker closes", RECOVERY_S)
        self.say(f"the breaker closed after {time.monotonic() - began:.2f} s")

    def missed(self):
        """Checks that Redis did not answer in time, for whatever reason."""
        return self.weir.metrics().total("weir_store_failures_total")

    def assert_not_missed(self, before):
        """On a machine that stands still for a deadline there is nothing to measure."""
        if self.missed() != before:
            raise TooSlow("Redis missed a deadline although nothing was done to it")

    def through_an_outage(self, path, fault, repair):
        """The phases before, at the fault, with the breaker open, during the repair, after it. A
        peer asks the application itself all the while."""
        load = self.load(path)
        peer = self.load(path, self.php)

        def mark(name):
            load.mark(name)
            peer.mark(name)
        mark("before")
        load.go_on(3)
        self.assert_not_missed(0)
        mark("fault")
        load.go_on(0.2)         # what was under way at the mark ends before the fault
        fault()
        self.wait_open()
        mark("open")
        load.go_on(3)
        mark("repair")
        repair()
        self.wait_closed()
        mark("after")
        missed = self.missed()
        load.go_on(3)
        phases = load.end()[1:]
        self.peers = peer.end()[1:]
        for phase, same_time in zip(phases, self.peers):
            self.say(f"{phase}; without weir p99.9 {same_time.p999} us")
        self.assert_not_missed(missed)
        self.assertEqual([phase.failed for phase in phases], 5 * [{}])
        return phases

    def assert_rejected(self, phases):
        """503 from the breaker's opening to its closing; around either, one or the other."""
        before, fault, is_open, repair, after = (set(phase.status) for phase in phases)
        self.assertEqual((before, is_open, after), ({200}, {503}, {200}))
        self.assertLessEqual(fault | repair, {200, 503})

    def assert_said_once(self):
        """One line for each turn of the breaker, and its number in the metrics."""
        self.assert_logged(self.weir, 1, OPENED)
        self.assert_logged(self.weir, 1, CLOSED)
        metrics = self.weir.metrics()
        self.assertEqual([metrics.get("weir_breaker_opened_total"),
                          metrics.get("weir_breaker_closed_total")], [1, 1])

    def assert_no_slower(self, before, fault, is_open, after):
        """Allowed are what the deadline takes, and next to nothing once the breaker is open. What
        the machine's other work does to 1,500 requests shows in the spans without a fault, and at
        the same time in what the peer saw: the worst of these is what p99.9 is held against."""
        usual = max(before.p999, after.p999)
        self.assert_fast(fault.p999 - max(usual, self.peers[1].p999), DEADLINE_AND_A_BIT_US,
                         "p99.9 added until the breaker opened")
        self.assert_fast(is_open.p999 - max(usual, self.peers[2].p999), BREAKER_OPEN_US,
                         "p99.9 added with the breaker open")
        self.assert_fast(is_open.p50 - before.p50, BREAKER_OPEN_US,
                         "median added with the breaker open")

    def renew(self):
        """For a further attempt: everything as at the beginning."""
        self.doCleanups()
        self.place.forget_log("weir-" + self._testMethodName)
        self.setUp()

    # ---- standing still ----

    @attempts(3)
    def test_stopped_admit(self):
        phases = self.through_an_outage("/admit", self.redis.pause, self.redis.go_on)
        self.assertEqual({code for phase in phases for code in phase.status}, {200})
        self.assert_said_once()
        self.assert_no_slower(*phases[:3], phases[4])

    @attempts(3)
    def test_stopped_reject(self):
        phases = self.through_an_outage("/reject", self.redis.pause, self.redis.go_on)
        self.assert_rejected(phases)
        self.assert_said_once()
        self.assert_no_slower(*phases[:3], phases[4])

    def test_stopped_reject_says_when_to_come_back(self):
        self.redis.pause()
        self.addCleanup(self.redis.go_on)
        reply = fcgi.ask(self.weir.socket, fcgi.usual_params("/reject", self.place.documents))
        self.assertEqual(reply.status, 503)
        self.assertIn(b"\r\nRetry-After: 2\r\n", reply.stdout)
        self.assertIn(b"\r\nCache-Control: no-store\r\n", reply.stdout)

    def test_stopped_limit_still_holds_on_this_host(self):
        self.redis.pause()
        self.addCleanup(self.redis.go_on)
        phase, = self.run_load(Load(self.weir.socket, clients=20, requests=20, path="/narrow",
                                    script=self.place.documents + "/index.php")).finish()
        self.say(str(phase))
        self.assertEqual((phase.status, phase.failed), ({200: 100, 429: 300}, {}))

    def test_stopped_seen_once_by_four_processes(self):
        """The breaker is the host's: one process says that it opened, one that it closed."""
        weir = Weir(self.place, self.php, ROUTES, redis=self.redis, spawned=True, name="spawned")
        front = self.start(LighttpdSpawn(self.place, weir, name="spawner"))
        self.place.link_documents("admit")
        self.addCleanup(self.place.unlink_documents, "admit")
        load = self.run_load(Load(front.port, rate=200, seconds=60, marks=True, timeout=5,
                                  path="/admit/index.php"))
        load.go_on(1)

        def said(words):
            return self.place.read_log(front.name).count(words)

        load.mark("stopped")
        self.redis.pause()
        wait_until(lambda: said(OPENED), "the breaker opens", 5)
        load.go_on(2)
        self.redis.go_on()
        wait_until(lambda: said(CLOSED), "the breaker closes", RECOVERY_S)
        load.mark("after")
        load.go_on(1)
        phases = load.end()
        for phase in phases:
            self.say(str(phase))
        self.assertEqual([(set(phase.status), phase.failed) for phase in phases], 3 * [({200}, {})])
        self.assertEqual([said(OPENED), said(CLOSED)], [1, 1])

    # ---- dying ----

    @attempts(3)
    def test_killed_local(self):
        phases = self.through_an_outage("/local", self.redis.kill, self.redis.start)
        self.assertEqual({code for phase in phases for code in phase.status}, {200})
        self.assert_said_once()
        self.assert_no_slower(*phases[:3], phases[4])

    def test_not_there_at_the_start(self):
        weir = Weir(self.place, self.php, ROUTES, redis=Redis(self.place, "absent"), name="early")
        self.start(weir)
        for path, status in (("/admit", 200), ("/local", 200), ("/reject", 503)):
            reply = fcgi.ask(weir.socket, fcgi.usual_params(
                path, SCRIPT_FILENAME=self.place.documents + "/index.php"))
            self.assertEqual((path, reply.status), (path, status))
        self.start(Redis(self.place, "absent"))
        wait_until(lambda: weir.metrics().get("weir_breaker_open") == 0, "it connects", RECOVERY_S)

    # ---- what is no outage to clients ----

    def assert_unnoticed(self, fault, pause=0.5):
        """Three times under load."""
        for path in ("/admit", "/local"):
            load = self.load(path)
            for number in range(3):
                load.mark(f"{path[1:]} {number}")
                fault()
                load.go_on(pause)
            phases = load.end()
            for phase in phases:
                self.say(str(phase))
            self.assertEqual([(set(phase.status), phase.failed) for phase in phases],
                             4 * [({200}, {})])

    def test_script_flush(self):
        self.assert_unnoticed(lambda: self.redis.call("SCRIPT", "FLUSH"))
        self.assertEqual(self.weir.log_lines(OPENED), [])
        self.assertEqual(self.weir.metrics().total("weir_store_failures_total"), 0)

    def test_restart(self):
        def restart():
            self.redis.stop()
            self.redis.start()

        self.assert_unnoticed(restart)
        wait_until(lambda: not self.is_open(), "the breaker closes", RECOVERY_S)

    def test_connections_killed(self):
        """As an administrator may, or a proxy between. Unless it happens more than once a second it
        is no outage."""
        self.assert_unnoticed(lambda: self.redis.call("CLIENT", "KILL", "TYPE", "normal"), 1.3)
        self.assertEqual(self.weir.log_lines(OPENED), [])


if __name__ == "__main__":
    weirtest.main(alone=True)

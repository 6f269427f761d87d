#!/usr/bin/python3 -B
"""Three sentinels move the master, under load. Clients see nothing of it but what store_down says,
and weir is at the new master soon after the sentinels are. No more is admitted by Redis than the
limit lets and what the new master had not heard of."""

import signal
import time

import weirtest
from weirtest import Case, Load, Watched, Weir, fcgi, wait_until
from weirtest.process import free_port
from weirtest.redis import tokens_spent

ROUTES = """\
[backend none]
type = none

[limit wide]
policy = 1000000/1s

[limit five]
policy = 5/1d

[limit strict]
identity = all
policy = 600/365d

[route admit]
match = /admit
limit = wide
store_down = admit

[route strict]
match = /strict
limit = strict
store_down = admit

[route narrow]
match = /narrow
limit = five
store_down = reject

[route default]
match = *
"""

RATE = 300
BURST = 600             # of `strict`
TOKEN_US = 365 * 86400 * 1000000 // BURST
RECOVERY_S = 3          # the breaker's longest pause, and what a busy machine takes
MAJORITY_S = 6          # three questions, a second each, and the time until the first


class SentinelFailover(Case):
    def setUp(self):
        self.watched = Watched(self, self.place, self._testMethodName)
        self.old, self.new = self.watched.nodes
        self.weir = self.start(Weir(self.place, None, ROUTES, redis=self.watched,
                                    name="weir-" + self._testMethodName))
        self.ask("/admit")

    def ask(self, path):
        return fcgi.ask(self.weir.socket, fcgi.usual_params(path)).status

    def is_used(self, node):
        """Whether that is where weir asks."""
        before = self.evalsha_calls(node)
        self.ask("/admit")
        return self.evalsha_calls(node) > before

    @staticmethod
    def evalsha_calls(node):
        for line in node.call("INFO", "commandstats").splitlines():
            if line.startswith("cmdstat_evalsha:calls="):
                return int(line.split("=")[1].split(",")[0])
        return 0

    def load(self, path):
        return self.run_load(Load(self.weir.socket, rate=RATE, seconds=60, marks=True, timeout=5,
                                  path=path))

    def admitted(self):
        """By Redis, of `strict`."""
        return self.weir.metrics().get("weir_decisions_total", limit="strict", result="admitted")

    def spent(self, node):
        return tokens_spent(node.call, "weir:strict:all", TOKEN_US)

    def through_a_failover(self, fault):
        """Under load: the fault, the failover, and weir at the new master. Returns when the fault
        was complete and when weir had left the old master for good."""
        load, strict = self.load("/admit"), self.load("/strict")
        load.go_on(1)
        load.mark("fault")
        fault()
        done = time.monotonic()
        self.watched.await_master(self.new)
        began = time.monotonic()
        wait_until(lambda: self.is_used(self.new) and
                   self.weir.metrics().get("weir_breaker_open") == 0,
                   "weir uses the new master", RECOVERY_S)
        there = time.monotonic()
        self.say(f"at the new master {there - began:.2f} s after the sentinels")
        load.mark("after")
        failures = self.weir.metrics().total("weir_store_failures_total")
        load.go_on(1)
        wait_until(lambda: self.weir.metrics().get(
            "weir_decisions_total", limit="strict", result="rejected") > 0, "it is used up")
        phases = load.end()
        for phase in phases:
            self.say(str(phase))
        self.assertEqual([(set(phase.status), phase.failed) for phase in phases],
                         len(phases) * [({200}, {})])
        self.say(f"{failures} checks were decided by store_down")
        phase, = strict.end()
        self.assertEqual((set(phase.status), phase.failed), ({200, 429}, {}))
        undecided = self.weir.metrics().get(
            "weir_requests_total", route="strict", outcome="undecided")
        self.assertEqual(phase.status[200], self.admitted() + undecided)
        return done, there

    def through_a_loss(self, fault):
        """The old master is gone: what the replica has then is what goes on, and what it has not is
        lost."""
        lost = 0

        def lose():
            nonlocal lost
            fault()
            time.sleep(0.2)             # for what was on its way to weir or to the replica
            lost = self.admitted() - self.spent(self.new)
        self.through_a_failover(lose)
        self.say(f"{self.admitted():.0f} admitted of {BURST}, {lost:.0f} lost")
        self.assertLessEqual(self.admitted(), BURST + max(lost, 0))
        self.assertEqual(self.spent(self.new), BURST)
        return lost

    def test_master_is_killed_and_one_sentinel_too(self):
        """The replica has not heard of what was spent last."""
        def fault():
            self.new.call("REPLICAOF", "127.0.0.1", str(free_port()))
            time.sleep(0.3)             # of load
            self.watched.sentinels[0].kill()
            self.old.kill()
        self.assertGreater(self.through_a_loss(fault), 0)

    def test_master_stands_still(self):
        self.addCleanup(self.old.go_on)
        self.through_a_loss(self.old.pause)

    def test_failover_is_ordered_and_what_was_spent_stays_spent(self):
        """The old master lives, and calls itself one for a while: only the sentinels know."""
        statuses = [self.ask("/narrow") for _ in range(6)]
        self.assertEqual(statuses, 5 * [200] + [429])
        wait_until(lambda: self.new.call("DBSIZE") == self.old.call("DBSIZE"), "it is replicated")
        done, there = self.through_a_failover(lambda: self.watched.sentinels[1].call(
            "SENTINEL", "FAILOVER", weirtest.sentinel.MASTER))
        self.assertEqual(self.ask("/narrow"), 429)
        # What the old one went on to admit, before weir left it, is lost.
        self.say(f"{self.admitted():.0f} admitted of {BURST}")
        self.assertLessEqual(self.admitted(), BURST + RATE * (there - done) + RATE / 10)

    def test_most_sentinels_are_followed(self):
        """The old master is lost to the sentinels alone and lives on as one. Weir sees nothing of
        it until they have named another, and the sentinel that it has asked is gone by then."""
        self.addCleanup(self.weir.signal, signal.SIGCONT)
        self.weir.signal(signal.SIGSTOP)
        # They find that out by PING, and cannot make it a replica.
        self.old.call("ACL", "SETUSER", "default", "-ping", "-slaveof", "-replicaof")
        self.watched.await_master(self.new)
        self.assertEqual(self.old.role(), "master")
        self.watched.sentinels[0].kill()
        self.weir.signal(signal.SIGCONT)
        began = time.monotonic()
        statuses = set()

        def is_there():
            statuses.add(self.ask("/admit"))
            return self.is_used(self.new)
        wait_until(is_there, "weir uses the new master", 2 * MAJORITY_S)
        self.say(f"at the new master {time.monotonic() - began:.2f} s after it could know")
        self.assertEqual(statuses, {200})
        metrics = self.weir.metrics()
        self.assertEqual(metrics.get("weir_breaker_open"), 0)
        self.assertEqual(metrics.total("weir_breaker_opened_total"), 0)
        self.assertEqual(self.old.role(), "master")


if __name__ == "__main__":
    weirtest.main()

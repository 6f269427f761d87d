#!/usr/bin/python3 -B
"""Three sentinels move the master, under load. Clients see nothing of it but what store_down says,
and weir is at the new master soon after the sentinels are."""

import time

import weirtest
from weirtest import Case, Load, PhpFpm, Watched, Weir, fcgi, wait_until

ROUTES = """\
[limit wide]
policy = 1000000/1s

[limit five]
policy = 5/1d

[route admit]
match = /admit
limit = wide
store_down = admit

[route narrow]
match = /narrow
limit = five
store_down = reject

[route default]
match = *
"""

RATE = 300
RECOVERY_S = 3          # the breaker's longest pause, and what a busy machine takes


class SentinelFailover(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.php = cls.start_for_class(PhpFpm(cls.place))

    def setUp(self):
        self.watched = Watched(self, self.place, self._testMethodName)
        self.old, self.new = self.watched.nodes
        self.weir = self.start(Weir(self.place, self.php, ROUTES, redis=self.watched,
                                    name="weir-" + self._testMethodName))
        self.ask("/admit")

    def ask(self, path):
        return fcgi.ask(self.weir.socket, fcgi.usual_params(
            path, SCRIPT_FILENAME=self.place.documents + "/index.php")).status

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

    def through_a_failover(self, fault):
        """Under load: the fault, the failover, and weir at the new master."""
        load = self.run_load(Load(self.weir.socket, rate=RATE, seconds=60, marks=True, timeout=5,
                                  path="/admit", script=self.place.documents + "/index.php"))
        load.go_on(1)
        load.mark("fault")
        fault()
        self.watched.await_master(self.new)
        began = time.monotonic()
        wait_until(lambda: self.is_used(self.new) and
                   self.weir.metrics().get("weir_breaker_open") == 0,
                   "weir uses the new master", RECOVERY_S)
        self.say(f"at the new master {time.monotonic() - began:.2f} s after the sentinels")
        load.mark("after")
        failures = self.weir.metrics().total("weir_store_failures_total")
        load.go_on(1)
        phases = load.end()
        for phase in phases:
            self.say(str(phase))
        self.assertEqual([(set(phase.status), phase.failed) for phase in phases],
                         len(phases) * [({200}, {})])
        self.say(f"{failures} checks were decided by store_down")

    def test_master_is_killed_and_one_sentinel_too(self):
        def fault():
            self.watched.sentinels[0].kill()
            self.old.kill()
        self.through_a_failover(fault)

    def test_master_stands_still(self):
        self.addCleanup(self.old.go_on)
        self.through_a_failover(self.old.pause)

    def test_failover_is_ordered_and_what_was_spent_stays_spent(self):
        """The old master lives, and calls itself one for a while: only the sentinels know."""
        statuses = [self.ask("/narrow") for _ in range(6)]
        self.assertEqual(statuses, 5 * [200] + [429])
        wait_until(lambda: self.new.call("DBSIZE") == self.old.call("DBSIZE"), "it is replicated")
        self.through_a_failover(lambda: self.watched.sentinels[1].call(
            "SENTINEL", "FAILOVER", weirtest.sentinel.MASTER))
        self.assertEqual(self.ask("/narrow"), 429)


if __name__ == "__main__":
    weirtest.main()

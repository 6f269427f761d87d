#!/usr/bin/python3 -B
"""A Redis Cluster: limits hold wherever their keys are, slots are moved under load, a master dies.
Clients see nothing of it but what store_down says, and only those whose keys that master had."""

import re
import time

import weirtest
from weirtest import Case, Cluster, Load, PhpFpm, Weir, fcgi, wait_until
from weirtest.certificates import Certificates
from weirtest.cluster import slot_of
from weirtest.redis import tokens_spent

# Only /both has an application behind it: on a busy machine it could be the one that says 503.
ROUTES = """\
[backend none]
type = none

[limit wide]
identity = user, ip
policy = 1000000/1s

[limit hundred]
policy = 100/1d

[limit window]
policy = 1000/1d sliding-window
policy = 500/1d sliding-log name log

[limit month]
identity = all
policy = 1000/month calendar

[limit five]
identity = header X-Team
on_missing = skip
policy = 5/1d

[limit places]
identity = all
policy = concurrent 3

[limit strict]
identity = user
on_missing = skip
policy = 600/365d

[limit few]
policy = 10/1d
max_identities = 2

[route admit]
match = /admit
limit = wide
store_down = admit

[route reject]
match = /reject
limit = wide
store_down = reject

[route hundred]
match = /hundred
limit = hundred
headers = x-ratelimit
store_down = admit

[route strict]
match = /strict
limit = strict
store_down = admit

[route both]
match = /both
backend = php
limit = hundred, window, month, places, five
store_down = reject

[route few]
match = /few
limit = few
store_down = reject

[route default]
match = *

[route]
backend = none
"""

RATE = 300
BURST = 600             # of `strict`
TOKEN_US = 365 * 86400 * 1000000 // BURST
FAILOVER_S = 15         # of a busy machine; the cluster itself takes about 2


class WithCluster(Case):
    """One for the class; each test has its own clients and its own weir."""
    replicas = True
    has_tls = False

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.php = cls.start_for_class(PhpFpm(cls.place))
        began = time.monotonic()
        cls.cluster = Cluster(cls.start_for_class, cls.place, "node", cls.replicas,
                              Certificates(cls.place) if cls.has_tls else None)
        cls.up_s = time.monotonic() - began

    def setUp(self):
        for node in self.cluster.masters:
            node.call("FLUSHALL")
        self.weir = self.start(Weir(self.place, self.php, ROUTES, redis=self.cluster,
                                    name="weir-" + self._testMethodName))

    def ask(self, path, address="192.0.2.1", **params):
        return fcgi.ask(self.weir.socket, fcgi.usual_params(
            path, SCRIPT_FILENAME=self.place.documents + "/index.php", REMOTE_ADDR=address,
            **params))

    def ask_as(self, user, path):
        return self.ask(path, AUTH_TYPE="Basic", REMOTE_USER=user).status

    def load_as(self, user, path):
        return self.run_load(Load(self.weir.socket, rate=RATE, seconds=60, marks=True, timeout=5,
                                  path=path, script=self.place.documents + "/index.php",
                                  params={"AUTH_TYPE": "Basic", "REMOTE_USER": user}))

    def failures(self):
        return self.weir.metrics().total("weir_store_failures_total")

    def why(self):
        """Checks that were not decided, by reason: for messages."""
        metrics = self.weir.metrics()
        reasons = {reason: metrics.total("weir_store_failures_total", reason=reason) for reason in
                   ("deadline", "breaker", "connection", "overload", "reply", "late")}
        return str({reason: count for reason, count in reasons.items() if count})

    def admitted(self):
        """By Redis, of `strict`."""
        return self.weir.metrics().get("weir_decisions_total", limit="strict", result="admitted")

    def wait_used_up(self):
        wait_until(lambda: self.weir.metrics().get(
            "weir_decisions_total", limit="strict", result="rejected") > 0, "it is used up")

    @staticmethod
    def remaining(reply):
        return int(re.search(rb"X-RateLimit-Remaining: (\d+)", reply.stdout)[1])

    def assert_only(self, phases, *status):
        for phase in phases:
            self.say(str(phase))
            self.assertEqual(phase.failed, {})
            self.assertLessEqual(set(phase.status), set(status))

    def users(self, holds):
        """Those whose master is such."""
        return [name for name in (f"u{n}" for n in range(60))
                if holds(self.cluster.master_of(slot_of("user=" + name)))]


class Deciding(WithCluster):
    replicas = False

    def test_what_a_later_slot_rejects_spends_nothing(self):
        address, team = "198.51.100.1", "HTTP_X_TEAM"
        got = [self.ask("/both", address, **{team: "red"}).status for _ in range(12)]
        self.assertEqual(got, 5 * [200] + 7 * [429])
        self.assertEqual(self.ask("/both", address, **{team: "blue"}).status, 200)
        self.assertEqual(self.remaining(self.ask("/hundred", address)), 93)
        window = self.cluster.value(f"weir:window:{{{address}}}")
        counts, log = window.split("=")[1].split(",")
        self.assertEqual((counts.split(".")[1:], len(log.split(";"))), (["0", "6"], 6))
        self.assertEqual(self.cluster.value("weir:month:{all}").split(".")[1], "6")
        self.assertIsNone(self.cluster.value("weir:places:{all}"))
        self.assertEqual(self.failures(), 0)

    def test_identities_beyond_share_a_bucket_of_another_slot(self):
        """The first two have ten each, all others ten together."""
        got = {address: [self.ask("/few", address).status for _ in range(11)]
               for address in (f"198.51.100.{n}" for n in range(10, 13))}
        self.assertEqual(list(got.values()), 3 * [10 * [200] + [429]])
        self.assertEqual(self.ask("/few", "198.51.100.99").status, 429)
        keys = [key for node in self.cluster.nodes for key in node.call("KEYS", "weir:few:*")]
        self.assertEqual(sorted(keys), ["weir:few:{198.51.100.10}", "weir:few:{198.51.100.11}",
                                        "weir:few:{overflow}"])

    def test_moved_slot_goes_on_counting(self):
        address = "198.51.100.2"
        slot = slot_of(address)
        source = self.cluster.master_of(slot)
        target = next(node for node in self.cluster.masters if node is not source)
        left = [self.remaining(self.ask("/hundred", address)) for _ in range(3)]
        self.cluster.begin_move(slot, target)
        left += [self.remaining(self.ask("/hundred", address))]      # is still there
        self.cluster.move_keys(slot, source, target)
        left += [self.remaining(self.ask("/hundred", address)) for _ in range(2)]    # ASK
        self.cluster.end_move(slot, target)
        left += [self.remaining(self.ask("/hundred", address)) for _ in range(2)]    # MOVED
        self.assertEqual(left, list(range(99, 91, -1)))
        self.assertEqual(self.failures(), 0)

    def test_several_keys_in_a_slot_that_is_being_moved(self):
        """None of them is there yet, so the new server takes them only one by one."""
        address = "198.51.100.3"
        slot = slot_of(address)
        source = self.cluster.master_of(slot)
        target = next(node for node in self.cluster.masters if node is not source)
        self.cluster.begin_move(slot, target)
        got = [self.ask("/both", address, HTTP_X_TEAM="moving").status for _ in range(8)]
        self.cluster.move_keys(slot, source, target)
        self.cluster.end_move(slot, target)
        self.assertEqual(got, 5 * [200] + 3 * [429])
        self.assertEqual(self.remaining(self.ask("/hundred", address)), 94)
        self.assertEqual(self.failures(), 0)

    def test_slots_moved_under_load(self):
        """No error, and no check undecided. To one master only: of slots that several take from
        each other at the same time, the cluster itself may lose one."""
        target = self.cluster.masters[2]
        users = self.users(lambda master: master is not target)
        loads = [self.load_as(user, "/reject") for user in users[:4]]
        strict = self.load_as(users[4], "/strict")
        for user in users:
            self.assertEqual(self.ask_as(user, "/reject"), 200)
        loads[0].go_on(0.5)
        for user in users:
            self.cluster.move(slot_of("user=" + user), target)
            self.assertEqual(self.ask_as(user, "/reject"), 200, self.why())
        self.assert_only([phase for load in loads for phase in load.end()], 200)
        self.wait_used_up()
        phases = strict.end()
        self.assert_only(phases, 200, 429)
        self.assertEqual(self.failures(), 0, self.why())
        self.assertEqual(sum(phase.status[200] for phase in phases), BURST)

    def test_slot_that_moves_knows_max_identities(self):
        """Whether an identity beyond max_identities is there is asked of one key alone, since for
        two of which one has moved neither server answers."""
        for address in ("198.51.100.10", "198.51.100.11"):
            self.assertEqual(self.ask("/few", address).status, 200)
        for address in ("198.51.100.50", "198.51.100.10"):
            slot = slot_of(address)
            source = self.cluster.master_of(slot)
            target = next(node for node in self.cluster.masters if node is not source)
            self.cluster.begin_move(slot, target)
            self.assertEqual(self.ask("/few", address).status, 200, self.why())
            self.cluster.move_keys(slot, source, target)
            self.assertEqual(self.ask("/few", address).status, 200, self.why())
            self.cluster.end_move(slot, target)
            self.assertEqual(self.ask("/few", address).status, 200, self.why())
        self.assertEqual(self.failures(), 0, self.why())

    def test_breaker_of_one_server_is_seen(self):
        """One that stands still takes only its own keys with it."""
        node = self.cluster.masters[0]
        gone = self.users(lambda master: master is node)[0]
        well = self.users(lambda master: master is not node)[0]
        node.pause()
        try:
            wait_until(lambda: self.ask_as(gone, "/reject") == 503, "it is missed")
            wait_until(lambda: self.weir.metrics().get("weir_breaker_open") == 1, "it is seen")
            failures = self.failures()
            self.assertEqual({self.ask_as(well, "/reject") for _ in range(50)}, {200})
            self.assertEqual(self.failures(), failures)
        finally:
            node.go_on()
        wait_until(lambda: self.ask_as(gone, "/reject") == 200, "it is back")
        wait_until(lambda: self.weir.metrics().get("weir_breaker_open") == 0, "it is seen")


class OverTls(WithCluster):
    """Who is named by another one is as well spoken to with TLS."""
    replicas = False
    has_tls = True
    needs = ("openssl",)

    test_moved_slot_goes_on_counting = Deciding.test_moved_slot_goes_on_counting
    test_what_a_later_slot_rejects_spends_nothing = \
        Deciding.test_what_a_later_slot_rejects_spends_nothing

    def test_all_servers_are_asked(self):
        for user in self.users(lambda master: True):
            self.assertEqual(self.ask_as(user, "/reject"), 200)
        self.assertEqual(self.failures(), 0, self.why())
        for node in self.cluster.masters:
            self.assertGreater(int(node.call("DBSIZE")), 0)


class Failover(WithCluster):
    def test_master_killed_under_load(self):
        """What the replica knew goes on: no more is admitted by Redis than the limit lets and what
        the replica had not heard of."""
        self.say(f"the cluster took {self.up_s:.1f} s")
        node, replica = self.cluster.masters[1], self.cluster.replicas[1]
        gone, narrow = self.users(lambda master: master is node)[:2]
        well = self.users(lambda master: master is not node)[0]
        self.assertEqual(self.ask_as(gone, "/reject"), 200)
        loads = [self.load_as(gone, "/admit"), self.load_as(well, "/reject")]
        strict = self.load_as(narrow, "/strict")
        loads[0].go_on(1)
        node.kill()
        began = time.monotonic()
        loads[0].go_on(0.2)             # for what was on its way to weir or to the replica
        key = f"weir:strict:{{user={narrow}}}"
        lost = self.admitted() - tokens_spent(replica.call_readonly, key, TOKEN_US)
        wait_until(lambda: self.ask_as(gone, "/reject") == 200, "the replica is asked",
                   FAILOVER_S)
        self.say(f"the replica is asked {time.monotonic() - began:.2f} s after the end")
        for load in loads:
            load.mark("after")
        failures = self.failures()
        loads[0].go_on(1)
        self.wait_used_up()
        self.assertEqual(self.failures(), failures)
        self.assert_only([phase for load in loads for phase in load.end()], 200)
        self.assert_only(strict.end(), 200, 429)
        wait_until(lambda: self.weir.metrics().get("weir_breaker_open") == 0, "all is well")
        self.say(f"{self.admitted():.0f} admitted of {BURST}, {lost:.0f} lost")
        self.assertLessEqual(self.admitted(), BURST + max(lost, 0))
        self.assertEqual(tokens_spent(replica.call, key, TOKEN_US), BURST)


if __name__ == "__main__":
    weirtest.main()

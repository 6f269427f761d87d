#!/usr/bin/python3 -B
"""Every way in which Redis can fail, under load, for each store_down: the answers are the
configured ones, none is late, all is well again soon after Redis is, and what Redis has counted is
what it has decided in time.

A second weir with a Redis of its own, to which nothing is done, is asked in the same seconds: what
the machine's other work takes, it takes from both. WEIR_TEST_FAULTS=long makes each phase longer
and allows the machine nothing."""

import os
import random
import shutil
import tempfile
import time

import weirtest
from weirtest import Case, Proxy, Redis, TooSlow, Weir, attempts, wait_until
from weirtest.cluster import SLOTS, ClusterNode
from weirtest.outage import FAILURES, PATHS, Decided, Run, percentile
from weirtest.process import free_port
from weirtest.redis import LoadingRedis, tokens_spent

ROUTES = """\
[backend none]
type = none

[limit]
identity = all

[limit admit]
policy = 100000/365d

[limit reject]
policy = 100000/month calendar

[limit local]
policy = 100000/365d

[route admit]
match = /admit
limit = admit
store_down = admit

[route reject]
match = /reject
limit = reject
store_down = reject

[route local]
match = /local
limit = local
store_down = local

[route default]
match = *
"""
TOKEN_US = 365 * 86400 * 1000000 // 100000      # longer than a test

IS_LONG = os.environ.get("WEIR_TEST_FAULTS") == "long"
BEFORE_S, OUTAGE_S, AFTER_S = (5, 10, 5) if IS_LONG else (0.4, 0.8, 0.4)
RATE = 500              # of all three paths together
DEADLINE_S = 0.150
MARGIN_S = 0.010
RECOVERY_S = 2


class Faults(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.control_redis = cls.start_for_class(Redis(cls.place, "control-redis"))
        cls.control = cls.start_for_class(
            Weir(cls.place, None, ROUTES, redis=cls.control_redis, name="control"))

    def renew(self):
        self.doCleanups()
        self.place.forget_log("weir")

    # ---- what Redis has counted ----

    @staticmethod
    def count(call, key, path):
        if path != "reject":
            return tokens_spent(call, key.format(path), TOKEN_US)
        value = call("GET", key.format(path)) or "0.0"
        return int((value if isinstance(value, str) else value.decode()).split(".")[1])

    # ---- a run ----

    def through(self, server, fault, repair, *, redis=None, key="weir:{}:all", forgets=False):
        """`server` is what weir uses, and `redis` who is asked for what it has counted. `fault` and
        `repair` return when they are complete; with `forgets` Redis comes back empty."""
        redis = redis or server
        weir = self.start(Weir(self.place, None, ROUTES, redis=server))
        run = Run(self, weir, self.control, RATE)
        run.go_on(BEFORE_S)
        before = Decided(weir)
        began = time.monotonic()
        fault()
        failing = time.monotonic()
        run.go_on(OUTAGE_S)
        outage = Decided(weir)
        repairing = time.monotonic()
        repair()
        back = time.monotonic()
        self.await_decisions(weir, outage)
        well, well_since = Decided(weir), time.monotonic()
        run.go_on(AFTER_S)
        run.end()
        after = Decided(weir)
        if before.failed > 0 or after.failed > well.failed:
            raise TooSlow("a deadline was missed although nothing was done to Redis")
        self.assert_configured(run, began, failing, repairing, well_since)
        self.assert_accounted(run, after)
        self.assert_counted(redis, key, after, outage if forgets else None)
        self.assert_in_time(run)
        return run, began, back

    @staticmethod
    def await_decisions(weir, earlier):
        """Until the breaker is closed and Redis has decided some requests of each path."""
        def is_well():
            return weir.metrics().get("weir_breaker_open") == 0 and \
                Decided(weir).by_redis >= earlier.by_redis + 30
        wait_until(is_well, "Redis decides again", 5)

    def assert_configured(self, run, began, failing, repairing, well):
        """Answers by store_down, and by nothing else."""
        for path in ("admit", "local"):
            self.assertEqual({request.status for request in run.requests[path]}, {200}, path)
        self.assertEqual(run.status_between("reject", 0, began), {200})
        self.assertLessEqual({request.status for request in run.requests["reject"]}, {200, 503})
        self.assertEqual(run.status_between("reject", failing, repairing), {503})
        self.assertEqual(run.status_between("reject", well, time.monotonic()), {200})

    def assert_accounted(self, run, after):
        """Each request was decided by Redis, or by what its route's store_down says."""
        answers = [request.status for request in run.requests["reject"]]
        self.assertEqual(after.refused, answers.count(503))
        self.assertEqual(after.failed, after.refused + after.undecided + after.by_memory)
        self.assertEqual(after.by_redis + after.failed, len(run.all()))

    def assert_counted(self, redis, key, after, outage):
        """What Redis has counted is what it has decided in time."""
        counts = {path: self.count(redis.call, key, path) for path in PATHS}
        decided = after.by_redis - (0 if outage is None else outage.by_redis)
        self.say(f"Redis has counted {counts}, of {decided:.0f}")
        self.assertEqual(sum(counts.values()), decided)

    def assert_in_time(self, run):
        requests, control = run.all(), run.requests["control"]
        self.assert_fast_s(percentile(requests, 0.999) - percentile(control, 0.999),
                           DEADLINE_S + MARGIN_S, "p99.9 added")
        self.assert_fast_s(percentile(requests, 1),
                           2 * DEADLINE_S + (0 if IS_LONG else percentile(control, 1)), "longest")

    def assert_fast_s(self, measured, allowed, what):
        self.assert_fast(round(measured * 1e6), round(allowed * 1e6), what)

    def through_an_outage(self, server, fault, repair, **how):
        run, _, back = self.through(server, fault, repair, **how)
        last = max(request.ended for request in run.requests["reject"] if request.status == 503)
        self.assert_fast_s(last - back, RECOVERY_S, "last undecided after Redis is back")

    def redis(self, *options, **how):
        return self.start(Redis(self.place, "redis", *options, **how))

    # ---- it does not answer ----

    @attempts(3)
    def test_stands_still(self):
        redis = self.redis()
        self.through_an_outage(redis, redis.pause, redis.go_on)

    @attempts(3)
    def test_killed(self):
        redis = self.redis()
        self.through_an_outage(redis, redis.kill, redis.start, forgets=True)

    def spoil(self, mode):
        redis = self.redis()
        proxy = self.start(Proxy(self.place, redis))

        def switch(to):
            proxy.mode = to
        self.through_an_outage(proxy, lambda: switch(mode), lambda: switch("pass"), redis=redis)
        self.assertGreater(proxy.spoilt, 1)

    @attempts(3)
    def test_silent(self):
        """It accepts connections, and says nothing on any."""
        self.spoil("silent")

    @attempts(3)
    def test_half_a_reply(self):
        self.spoil("half")

    @attempts(3)
    def test_replies_of_the_wrong_shape(self):
        self.spoil("wrong")

    # ---- it answers that it cannot ----

    def through_settings(self, redis, fault, repair, **how):
        """Both are commands."""
        self.through_an_outage(redis, lambda: redis.calls(*fault), lambda: redis.calls(*repair),
                               **how)

    @attempts(3)
    def test_loading(self):
        """Started anew with so many keys that it takes a second to read them."""
        redis = self.start(LoadingRedis(self.place))
        self.through_an_outage(redis, redis.begin_anew, redis.wait_loaded)

    @attempts(3)
    def test_readonly(self):
        self.through_settings(self.redis(), [("REPLICAOF", "127.0.0.1", str(free_port()))],
                              [("REPLICAOF", "NO", "ONE")])

    @attempts(3)
    def test_masterdown(self):
        self.through_settings(self.redis("--replica-serve-stale-data", "no"),
                              [("REPLICAOF", "127.0.0.1", str(free_port()))],
                              [("REPLICAOF", "NO", "ONE")])

    @attempts(3)
    def test_oom(self):
        self.through_settings(self.redis(), [("CONFIG", "SET", "maxmemory", "1")],
                              [("CONFIG", "SET", "maxmemory", "0")])

    @attempts(3)
    def test_noreplicas(self):
        self.through_settings(self.redis(), [("CONFIG", "SET", "min-replicas-to-write", "1")],
                              [("CONFIG", "SET", "min-replicas-to-write", "0")])

    @attempts(3)
    def test_misconf(self):
        """It may not write as long as it cannot save, since its file's name is a directory's."""
        home = tempfile.mkdtemp(dir=self.place.sub("tmp"))
        file = os.path.join(home, "dump.rdb")
        redis = self.redis("--save", "3600 1000000", "--dir", home)

        def save(result):
            redis.call("BGSAVE")
            wait_until(lambda: f"rdb_last_bgsave_status:{result}\r\nrdb_last_bgsave_time_sec" in
                       redis.call("INFO", "persistence").decode() and
                       "rdb_bgsave_in_progress:0" in redis.call("INFO", "persistence").decode(),
                       "it has tried to save")

        def fault():
            os.makedirs(os.path.join(file, "full"))
            save("err")

        def repair():
            shutil.rmtree(file)
            save("ok")
        self.through_an_outage(redis, fault, repair)

    @attempts(3)
    def test_noauth(self):
        """Who is connected stays so."""
        self.through_settings(self.redis(), [("CONFIG", "SET", "requirepass", "new"),
                                             ("CLIENT", "KILL", "TYPE", "normal")],
                              [("AUTH", "new"), ("CONFIG", "SET", "requirepass", "")])

    def redis_with_user(self):
        file = self.place.write("password", "old\n")
        redis = self.redis(keys=f"username = weir\npassword_file = {file}")
        redis.call("ACL", "SETUSER", "weir", "on", ">old", "~weir:*", "-@all", "+time", "+set",
                   "+get", "+eval", "+evalsha", "+del")
        return redis

    @attempts(3)
    def test_wrongpass(self):
        self.through_settings(self.redis_with_user(),
                              [("ACL", "SETUSER", "weir", "resetpass", ">new"),
                               ("CLIENT", "KILL", "USER", "weir")],
                              [("ACL", "SETUSER", "weir", "resetpass", ">old")])

    @attempts(3)
    def test_noperm(self):
        self.through_settings(self.redis_with_user(), [("ACL", "SETUSER", "weir", "-evalsha")],
                              [("ACL", "SETUSER", "weir", "+evalsha")])

    @attempts(3)
    def test_noperm_within_the_script(self):
        self.through_settings(self.redis_with_user(), [("ACL", "SETUSER", "weir", "-set")],
                              [("ACL", "SETUSER", "weir", "+set")])

    def clusterdown(self, name, keys, key):
        """A slot that nobody asks for is nobody's, so the one server of the cluster serves none."""
        node = self.start(ClusterNode(self.place, f"{name}-{free_port()}"))
        slots = ("ADDSLOTSRANGE", "0", str(SLOTS - 1))
        node.call("CONFIG", "SET", "cluster-require-full-coverage", "yes")
        node.call("CLUSTER", *slots)
        node.keys = keys.format(node.port)

        def wait(state):
            wait_until(lambda: f"cluster_state:{state}" in node.call("CLUSTER", "INFO"),
                       f"the cluster is {state}")

        def fault():
            node.call("CLUSTER", "DELSLOTS", "1")
            wait("fail")

        def repair():
            node.call("CLUSTER", "ADDSLOTS", "1")
            wait("ok")
        wait("ok")
        self.through_an_outage(node, fault, repair, key=key)

    @attempts(3)
    def test_clusterdown(self):
        self.clusterdown("node", "cluster = tcp:127.0.0.1:{}", "weir:{}:{{all}}")

    @attempts(3)
    def test_clusterdown_of_a_server_that_is_taken_for_one_alone(self):
        self.clusterdown("alone", "server = tcp:127.0.0.1:{}", "weir:{}:all")

    # ---- it can, after all ----

    @attempts(3)
    def test_scripts_flushed_at_random(self):
        redis = self.redis()
        weir = self.start(Weir(self.place, None, ROUTES, redis=redis))
        run = Run(self, weir, self.control, RATE)
        flushes, until = 0, time.monotonic() + BEFORE_S + OUTAGE_S + AFTER_S
        while time.monotonic() < until:
            redis.call("SCRIPT", "FLUSH", random.choice(("SYNC", "ASYNC")))
            flushes += 1
            run.go_on(random.uniform(0, 0.02))
        run.end()
        after = Decided(weir)
        if after.failed > 0:
            lates = weir.metrics().total(FAILURES, reason="deadline")
            self.assertEqual(lates, after.failed)
            raise TooSlow("a deadline was missed")
        self.say(f"{flushes} times, {after.by_redis:.0f} checks")
        self.assertEqual({request.status for request in run.all()}, {200})
        self.assert_counted(redis, "weir:{}:all", after, None)
        self.assert_in_time(run)


if __name__ == "__main__":
    weirtest.main(alone=True)

#!/usr/bin/python3 -B
"""What `weir check --connect` says is what happens: where it says good, weir counts in that Redis
with every algorithm, and with no more rights than the manual names."""

import os
import re
import shutil
import subprocess

import weirtest
from weirtest import Case, PhpFpm, Redis, Watched, Weir, fcgi, wait_until
from weirtest.cluster import Cluster, slot_of
from weirtest.place import SOURCE, worker_user

POLICIES = {
    "bucket": "3/1d",
    "window": "3/1d sliding-window",
    "log": "3/1d sliding-log",
    "day": "3/month calendar",
    "places": "concurrent 3",
    "mixed": "3/1d\npolicy = 5/1h sliding-log",
    "many": "6/1d shards 2",
}
ROUTES = "".join(
    f"[limit {name}]\npolicy = {policy}\nmax_identities = 2\n"
    f"[route {name}]\nmatch = /{name}\nlimit = {name}\nstore_down = reject\n"
    for name, policy in POLICIES.items()) + "[route default]\nmatch = *\n"


def rights_of_the_manual():
    """The rules behind the password."""
    with open(os.path.join(SOURCE, "contrib", "man", "weir.ini.5"), encoding="utf-8") as file:
        line = re.search(r"^ACL SETUSER weir on >PASSWORD (.*)$", file.read(), re.MULTILINE)
    return line.group(1).replace("\\-", "-").split()


def make_user(server, *more):
    server.call("ACL", "SETUSER", "weir", "reset", "on", ">secret", *rights_of_the_manual(), *more)


class WithUser:
    """A server, or several, with the user of the manual."""

    def __init__(self, place, server):
        self._keys = server.keys
        self._password = place.write("password", "secret\n")
        os.chmod(self._password, 0o600)
        if worker_user() is not None:
            shutil.chown(self._password, worker_user())

    @property
    def keys(self):
        """Of [redis]."""
        return self._keys + f"\nusername = weir\npassword_file = {self._password}"


class CheckConnect(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.php = cls.start_for_class(PhpFpm(cls.place))

    def configured(self, redis):
        return Weir(self.place, self.php, ROUTES, redis=redis,
                    name="weir-" + self._testMethodName)

    def check(self, weir):
        """Its status, and all that it says."""
        user = worker_user()
        become = [] if user is None else ["setpriv", "--reuid", user, "--regid", user,
                                          "--clear-groups"]
        done = subprocess.run([*become, weir.place.weir, "check", "--connect", weir.config],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=60, check=False)
        return done.returncode, done.stdout

    def ask(self, weir, path):
        return fcgi.ask(weir.socket, fcgi.usual_params(
            path, SCRIPT_FILENAME=self.place.documents + "/index.php")).status

    def test_the_rights_of_the_manual_are_enough(self):
        redis = self.start(Redis(self.place, "redis-least"))
        make_user(redis)
        weir = self.configured(WithUser(self.place, redis))
        status, said = self.check(weir)
        self.assertEqual((status, "error" in said), (0, False), said)
        self.start(weir)
        for name in POLICIES:
            seen = [self.ask(weir, "/" + name) for _ in range(3)]
            self.assertEqual(seen, 3 * [200], name)
        for name in ("bucket", "window", "log", "day", "mixed"):
            self.assertEqual(self.ask(weir, "/" + name), 429, name)
        # A place is given back, so its key is gone; the others are there.
        wait_until(lambda: weir.metrics().get("weir_leases") == 0, "all places are given back")
        self.assertEqual(self.ask(weir, "/places"), 200)
        self.assertEqual(weir.metrics().total("weir_store_failures_total"), 0)
        self.assertEqual(weir.log_lines("refuses a check"), [])

    def test_a_missing_right_is_what_serve_lacks(self):
        redis = self.start(Redis(self.place, "redis-less"))
        make_user(redis, "-del")
        weir = self.configured(WithUser(self.place, redis))
        status, said = self.check(weir)
        self.assertEqual(status, 1)
        self.assertIn("may not call DEL: NOPERM", said)
        make_user(redis, "-set")
        self.assertEqual(self.check(weir)[0], 1)
        self.start(weir)
        self.assertEqual(self.ask(weir, "/bucket"), 503)

    def test_a_socket_that_the_user_may_not_connect_to(self):
        if worker_user() is None:
            self.skipTest("only root can be another user")
        redis = self.start(Redis(self.place, "redis-closed"))
        os.chown(redis.socket, 0, 0)
        os.chmod(redis.socket, 0o600)
        status, said = self.check(self.configured(redis))
        self.assertEqual(status, 1)
        self.assertRegex(said, r"\[redis\] server: unix:\S+: it cannot be connected to: .*root")

    def test_sentinels_are_asked_and_the_master_that_they_name(self):
        watched = Watched(self, self.place, "sentinels")
        weir = self.configured(watched)
        status, said = self.check(weir)
        self.assertEqual(status, 0, said)
        master = f"tcp:127.0.0.1:{watched.nodes[0].port}"
        self.assertEqual(said.count(f"sentinel; the master is {master}\n"), 3, said)
        self.assertRegex(said, rf"redis {master}: .*, master; a decision takes ")
        # One that is gone is told, and the others are enough to know the master.
        watched.sentinels[1].kill()
        status, said = self.check(weir)
        self.assertEqual(status, 0, said)
        self.assertIn(f"warning: tcp:127.0.0.1:{watched.sentinels[1].port}: nobody listens there",
                      said)
        watched.nodes[0].kill()
        self.assertEqual(self.check(weir)[0], 1)

    def test_the_rights_of_the_manual_are_enough_for_a_cluster(self):
        cluster = Cluster(self.start, self.place, "least", replicas=False)
        weir = self.configured(WithUser(self.place, cluster))
        for node in cluster.nodes:
            make_user(node)
        status, said = self.check(weir)
        self.assertEqual(status, 1)
        self.assertIn("may not call CLUSTER SLOTS: NOPERM", said)
        self.assertIn("may not call ASKING: NOPERM", said)
        for node in cluster.nodes:
            make_user(node, "+cluster|slots", "+asking")
        status, said = self.check(weir)
        self.assertEqual((status, said.count(", master; a decision takes ")), (0, 3), said)
        self.start(weir)
        for name in POLICIES:
            wait_until(lambda n=name: self.ask(weir, "/" + n) == 200, f"{name} is counted")
        # A key that is about to move: whoever has it sends weir on, which then is ASKING.
        key = next(key for node in cluster.masters for key in node.call("KEYS", "weir:log:*"))
        target = next(node for node in cluster.masters
                      if node is not cluster.master_of(slot_of(key)))
        source = cluster.begin_move(slot_of(key), target)
        cluster.move_keys(slot_of(key), source, target)
        failed = weir.metrics().total("weir_store_failures_total")
        self.assertEqual([self.ask(weir, "/log") for _ in range(3)], [200, 200, 429])
        self.assertEqual(weir.metrics().total("weir_store_failures_total"), failed)

    def test_a_server_of_a_cluster_may_be_away_and_a_master_may_not(self):
        cluster = Cluster(self.start, self.place, "away", replicas=False)
        weir = self.configured(cluster)
        self.assertEqual(self.check(weir)[0], 0)
        cluster.masters[1].kill()           # not named in the file
        status, said = self.check(weir)
        self.assertEqual(status, 1)
        self.assertRegex(said, rf"\[redis\] cluster: tcp:127.0.0.1:{cluster.masters[1].port}: "
                               "nobody listens there")


if __name__ == "__main__":
    weirtest.main()

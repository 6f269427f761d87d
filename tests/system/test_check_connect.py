#!/usr/bin/python3 -B
"""What `weir check --connect` says is what happens: where it says good, weir counts in that Redis
with every algorithm, and with no more rights than the manual names."""

import os
import re
import select
import shutil
import socket
import subprocess

import weirtest
from weirtest import Case, PhpFpm, Redis, Watched, Weir, fcgi, wait_until
from weirtest.certificates import Certificates
from weirtest.cluster import SLOTS, Cluster, slot_of
from weirtest.place import SOURCE, worker_user
from weirtest.process import free_port
from weirtest.sentinel import RedisNode, Sentinel

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


class Named:
    """What [redis] says, whoever is there."""

    def __init__(self, keys):
        self.keys = keys


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
        kind = "named-" if isinstance(redis, Named) else "weir-"
        return Weir(self.place, self.php, ROUTES, redis=redis, name=kind + self._testMethodName)

    @staticmethod
    def begin_check(weir):
        user = worker_user()
        become = [] if user is None else ["setpriv", "--reuid", user, "--regid", user,
                                          "--clear-groups"]
        return subprocess.Popen([*become, weir.place.weir, "check", "--connect", weir.config],
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def check(self, weir):
        """Its status, and all that it says."""
        with self.begin_check(weir) as checker:
            said = checker.communicate(timeout=60)[0]
        return checker.returncode, said

    def check_of(self, keys):
        return self.check(self.configured(Named(keys)))

    def assert_told(self, keys, text):
        status, said = self.check_of(keys)
        self.assertEqual(status, 1, said)
        self.assertRegex(said, text)

    def assert_logged(self, keys, text):
        """Of what serve says of it."""
        weir = self.configured(Named(keys))
        weir.start()
        try:
            for name in POLICIES:       # a server may have the keys of some
                self.ask(weir, "/" + name)
            wait_until(lambda: weir.log_lines(text), text, 10)
        finally:
            weir.stop()

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

    def test_users_are_missed_on_each_server(self):
        watched = Watched(self, self.place, "users")
        master, replica = watched.nodes
        weir = self.configured(WithUser(self.place, watched))
        make_user(master, "+role")
        status, said = self.check(weir)
        self.assertEqual((status, said.count("the login is not taken")), (1, 1), said)
        self.assertRegex(said, rf"password_file: tcp:127.0.0.1:{replica.port}: .*WRONGPASS.*; "
                               "Redis does not replicate users and passwords, so each server ")
        make_user(replica)
        status, said = self.check(weir)
        self.assertEqual((status, said.count("may not call")), (1, 1), said)
        self.assertRegex(said, rf"username: tcp:127.0.0.1:{replica.port}: .* may not call ROLE: "
                               "NOPERM.*; Redis does not replicate users")
        make_user(replica, "+role")
        status, said = self.check(weir)
        self.assertEqual((status, said.count("a decision takes")), (0, 2), said)
        self.assertNotIn("error", said)

    # Whom [redis] names in the place of another.

    def test_servers_of_another_kind_are_told(self):
        master = self.start(RedisNode(self.place, "kinds"))
        watcher = self.start(Sentinel(self.place, "kinds-s", master, 1))
        server, sentinel = f"tcp:127.0.0.1:{master.port}", f"tcp:127.0.0.1:{watcher.port}"
        for keys, said, logged in (
                (f"sentinel = {server}\nmaster = main", "it is no sentinel but a server; name the "
                 "sentinels, whose port is 26379", "remedy=\"it is no sentinel but a server"),
                (f"server = {sentinel}", "it is a sentinel; write sentinel = ADDRESS and master",
                 "remedy=\"it is a sentinel "),
                (f"cluster = {sentinel}", "it is a sentinel; write sentinel = ADDRESS and master",
                 "remedy=\"it is a sentinel "),
                (f"cluster = {server}", "it is of no cluster .*; write server = ",
                 "remedy=\"it is no cluster")):
            with self.subTest(keys=keys):
                self.assert_told(keys, said)
                self.assert_logged(keys, logged)

    def test_a_replica_that_can_be_written_to_is_told(self):
        master = self.start(RedisNode(self.place, "written"))
        replica = self.start(RedisNode(self.place, "written-r", master))
        replica.call("CONFIG", "SET", "replica-read-only", "no")
        keys = f"server = tcp:127.0.0.1:{replica.port}"
        self.assert_told(keys, r"server: tcp:\S+: it is a replica, which can be written to "
                               r"\(replica-read-only no\)")
        weir = self.start(self.configured(Named(keys)))
        line = "a replica that can be written to"
        wait_until(lambda: weir.log_lines(line), line)
        answers = len(weir.log_lines("Redis answers"))
        replica.call("CLIENT", "KILL", "TYPE", "normal")
        wait_until(lambda: self.ask(weir, "/bucket") == 200 and
                   len(weir.log_lines("Redis answers")) > answers, "it connects anew")
        self.assertEqual(len(weir.log_lines(line)), 1)
        # A master is none, though it was asked as well.
        self.assertEqual(self.check_of(f"server = tcp:127.0.0.1:{master.port}")[0], 0)

    def test_ports_of_the_other_kind_are_told(self):
        certificates, secure = Certificates(self.place), free_port()
        server = self.start(RedisNode(self.place, "plain"))
        self.start(Redis(self.place, "secure", "--tls-port", str(secure),
                         *certificates.redis_options()))
        write_tls, write_tcp = "write tls: in place of tcp:", "write tcp: in place of tls:"
        plain_keys = f"tls:127.0.0.1:{server.port}"
        more = f"\ntls_ca = {certificates.ca}"
        for keys, text in ((f"server = tcp:127.0.0.1:{secure}", write_tls),
                           (f"sentinel = tcp:127.0.0.1:{secure}\nmaster = main", write_tls),
                           (f"cluster = tcp:127.0.0.1:{secure}", write_tls),
                           (f"server = {plain_keys}{more}", write_tcp)):
            with self.subTest(keys=keys):
                status, said = self.check_of(keys + "\ndeadline = 50ms")
                self.assertEqual(status, 1, said)
                self.assertIn(text, said)
                self.assert_logged(keys, text)

    # All at the same time.

    def test_servers_are_asked_at_the_same_time(self):
        for keys in ("sentinel = {}\nmaster = main", "cluster = {}"):
            with self.subTest(keys=keys):
                listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(4)]
                names = ", ".join(f"tcp:127.0.0.1:{listener.getsockname()[1]}"
                                  for listener in listeners)
                weir = self.configured(Named(keys.format(names)))
                with self.begin_check(weir) as checker:
                    peers = [listener.accept()[0] for listener in listeners]
                    for peer in peers:
                        peer.recv(100)
                    # None of them was given up before the last one was asked.
                    self.assertEqual(select.select(peers, [], [], 0)[0], [])
                    for peer in peers + listeners:
                        peer.close()
                    said = checker.communicate(timeout=60)[0]
                self.assertEqual(said.count("it does not answer as a Redis does"), 4, said)

    def test_backends_are_connected_to_at_the_same_time(self):
        with socket.create_server(("0.0.0.0", 0), backlog=0) as listener:
            port = listener.getsockname()[1]
            full = [socket.socket() for _ in range(4)]
            for peer in full:
                peer.setblocking(False)
                peer.connect_ex(("127.0.0.1", port))
            # One after the other they would take longer than all of them have.
            servers = "".join(f"server = tcp:127.0.0.{n}:{port}\n" for n in range(1, 13))
            said = self.check(Weir(self.place, None, f"[backend full]\n{servers}"
                                   "[route all]\nmatch = *\n", name="weir-full"))[1]
            for peer in full:
                peer.close()
        self.assertEqual(said.count("it cannot be connected to now: Connection timed out"), 12,
                         said)

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

    def assert_told_of_a_node(self, node):
        for keys, said, logged in (
                (f"sentinel = {node}\nmaster = main", "it is no sentinel but a server of a Redis "
                 "Cluster; write cluster = ", "remedy=\"it is no sentinel but a server"),
                (f"server = {node}", "it is a server of a Redis Cluster, .* write cluster = ",
                 "remedy=\"it is one of a cluster")):
            with self.subTest(keys=keys):
                self.assert_told(keys, said)
                self.assert_logged(keys, logged)

    def test_what_a_cluster_lacks_is_told(self):
        cluster = Cluster(self.start, self.place, "lacks")
        weir = self.configured(WithUser(self.place, cluster))
        rights = "+cluster|slots", "+asking"
        for node in cluster.nodes[:-2]:
            make_user(node, *rights)
        make_user(cluster.nodes[-1], *rights)           # which is the one that the file names
        lacking = cluster.nodes[-2]                     # is a replica that the others name
        status, said = self.check(weir)
        self.assertEqual((status, said.count("the login is not taken")), (1, 1), said)
        self.assertRegex(said, rf"password_file: tcp:127.0.0.1:{lacking.port}: .*; Redis does not "
                               "replicate users")
        make_user(lacking, *rights)
        status, said = self.check(weir)
        self.assertEqual((status, said.count("a decision takes")), (0, 6), said)
        # Slots that nobody serves.
        hole = 101
        cluster.masters[1].call("CLUSTER", "DELSLOTSRANGE", str(SLOTS // 3),
                                str(SLOTS // 3 + hole - 1))
        status, said = self.check(weir)
        self.assertEqual(status, 1, said)
        self.assertIn(f"cluster: {hole} of the {SLOTS} slots have no server that is known, slot "
                      f"{SLOTS // 3} the first of them", said)
        cluster.masters[1].call("CLUSTER", "ADDSLOTSRANGE", str(SLOTS // 3),
                                str(SLOTS // 3 + hole - 1))
        wait_until(lambda: self.check(weir)[0] == 0, "all slots are served again")
        self.assert_told_of_a_node(f"tcp:127.0.0.1:{cluster.masters[0].port}")
        # A replica may be away, and a master may not, whoever names it.
        for replica in cluster.replicas[:2]:
            replica.kill()
        status, said = self.check(weir)
        self.assertEqual(status, 0, said)
        self.assertIn(f"warning: tcp:127.0.0.1:{cluster.replicas[0].port}: nobody listens there",
                      said)
        for number, is_named in ((0, True), (1, False)):
            cluster.masters[number].kill()
            self.assertEqual(str(cluster.masters[number].port) in cluster.keys, is_named)
            status, said = self.check(weir)
            self.assertEqual(status, 1)
            self.assertRegex(said, rf"\] cluster: tcp:127.0.0.1:{cluster.masters[number].port}: "
                                   rf"nobody listens there.*; it has 546\d of the cluster's {SLOTS}"
                                   " slots, and nobody else has them")


if __name__ == "__main__":
    weirtest.main()

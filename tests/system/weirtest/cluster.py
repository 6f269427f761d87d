"""A Redis Cluster: masters that share the slots, and a replica of each."""

import binascii

from weirtest import redis
from weirtest.process import free_port, wait_until
from weirtest.sentinel import Node

SLOTS = 16384
NODE_TIMEOUT_MS = 1000


def slot_of(key):
    """Of a key as it stands in Redis."""
    begin = key.find("{")
    end = key.find("}", begin + 1) if begin >= 0 else -1
    if end > begin + 1:
        key = key[begin + 1:end]
    return binascii.crc_hqx(key.encode(), 0) % SLOTS


class ClusterNode(Node):
    def __init__(self, place, name, certificates=None):
        """With TLS, and only so, if there are certificates."""
        super().__init__(place, name)
        self.bus = free_port()
        self.number = None
        self._certificates = certificates

    def connect(self):
        peer = super().connect()
        return peer if self._certificates is None else self._certificates.wrap(peer)

    def _ports(self):
        if self._certificates is None:
            return ["--port", str(self.port)]
        return ["--port", "0", "--tls-port", str(self.port), "--tls-cluster", "yes",
                "--tls-replication", "yes", *self._certificates.redis_options()]

    def command(self):
        return [redis.PROGRAM, *self._ports(), "--bind", "127.0.0.1", "--save", "",
                "--appendonly", "no", "--dir", self.place.sub("tmp"), "--daemonize", "no",
                "--cluster-enabled", "yes", "--cluster-port", str(self.bus),
                "--cluster-config-file", self.name + ".conf",
                "--cluster-node-timeout", str(NODE_TIMEOUT_MS),
                "--cluster-require-full-coverage", "no",
                "--cluster-replica-validity-factor", "0",
                "--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1"]

    def start(self):
        super().start()
        self.number = self.call("CLUSTER", "MYID")
        return self

    def call_readonly(self, *words):
        """Of a replica, what it has of its master's keys."""
        return self.calls(("READONLY",), words)[1]

    def is_master(self):
        return self.call("ROLE")[0] == "master"

    def ranges(self):
        """What it says of who has what: first, last, port of the master."""
        return [(int(entry[0]), int(entry[1]), int(entry[2][1]))
                for entry in self.call("CLUSTER", "SLOTS")]

    def is_whole(self, masters, replicas):
        facts = self.call("CLUSTER", "SLOTS")
        return sum(int(entry[1]) - int(entry[0]) + 1 for entry in facts) == SLOTS and \
            len({entry[2][2] for entry in facts}) == masters and \
            all(len(entry) == 3 + replicas for entry in facts)


class Cluster:
    """Three masters with as many slots each, and a replica each unless there are to be none."""

    def __init__(self, start, place, prefix, replicas=True, certificates=None):
        self._certificates = certificates
        self.masters = [start(ClusterNode(place, f"{prefix}-{n}", certificates)) for n in range(3)]
        self.replicas = [start(ClusterNode(place, f"{prefix}-{n}r", certificates))
                         for n in range(3)] if replicas else []
        self.nodes = self.masters + self.replicas
        for number, node in enumerate(self.masters):
            node.call("CLUSTER", "ADDSLOTSRANGE", str(number * SLOTS // 3),
                      str((number + 1) * SLOTS // 3 - 1))
            node.call("CLUSTER", "SET-CONFIG-EPOCH", str(number + 1))
        for number, node in enumerate(self.nodes):      # gossip alone would take its time
            for other in self.nodes[:number]:
                node.call("CLUSTER", "MEET", "127.0.0.1", str(other.port), str(other.bus))
        self._wait(3, 0, self.nodes)
        for master, replica in zip(self.masters, self.replicas):
            wait_until(lambda r=replica, m=master: m.number in r.call("CLUSTER", "NODES"),
                       "they know each other")
            replica.call("CLUSTER", "REPLICATE", master.number)
        self._wait(3, 1 if replicas else 0, self.nodes)
        wait_until(lambda: all(node.call("ROLE")[3] == "connected" for node in self.replicas),
                   "the replicas follow", 20)

    @staticmethod
    def _wait(masters, replicas, nodes):
        wait_until(lambda: all("cluster_state:ok" in node.call("CLUSTER", "INFO") and
                               node.is_whole(masters, replicas) for node in nodes),
                   "the cluster is whole", 20)

    @property
    def keys(self):
        """Of [redis]. Not all of them: the others are found."""
        kind = "tcp" if self._certificates is None else "tls"
        tls = "" if self._certificates is None else f"\ntls_ca = {self._certificates.ca}"
        return f"cluster = {kind}:127.0.0.1:{self.nodes[-1].port}, " \
            f"{kind}:127.0.0.1:{self.masters[0].port}{tls}"

    def master_of(self, slot):
        """Who has it, as the first that answers says."""
        for node in self.nodes:
            if node.process is None:
                continue
            for first, last, port in node.ranges():
                if first <= slot <= last:
                    return next(node for node in self.nodes if node.port == port)
        raise AssertionError(f"nobody has slot {slot}")

    def value(self, key):
        return self.master_of(slot_of(key)).call("GET", key)

    def begin_move(self, slot, target):
        source = self.master_of(slot)
        target.call("CLUSTER", "SETSLOT", str(slot), "IMPORTING", source.number)
        source.call("CLUSTER", "SETSLOT", str(slot), "MIGRATING", target.number)
        return source

    def move_keys(self, slot, source, target, count=1000):
        for key in source.call("CLUSTER", "GETKEYSINSLOT", str(slot), str(count)):
            source.call("MIGRATE", "127.0.0.1", str(target.port), key, "0", "5000")

    def end_move(self, slot, target):
        """The new one first, as the specification wants it."""
        target.call("CLUSTER", "SETSLOT", str(slot), "NODE", target.number)
        for node in self.masters:
            if node is not target:
                node.call("CLUSTER", "SETSLOT", str(slot), "NODE", target.number)

    def move(self, slot, target):
        source = self.begin_move(slot, target)
        while source.call("CLUSTER", "COUNTKEYSINSLOT", str(slot)) != "0":
            self.move_keys(slot, source, target)
        self.end_move(slot, target)

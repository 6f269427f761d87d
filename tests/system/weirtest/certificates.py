"""A CA and a certificate by it for servers on 127.0.0.1, made by the openssl program."""

import os
import ssl
import subprocess


class Certificates:
    def __init__(self, place):
        self._place = place
        self.ca, self.certificate = self._path("ca.pem"), self._path("server.pem")
        self.key = self._path("server.key")
        ca_key = self._path("ca.key")
        # Newer versions of OpenSSL want both to be said.
        self._make(self.ca, ca_key, "ca", "-addext", "keyUsage=critical,keyCertSign")
        self._make(self.certificate, self.key, "server", "-CA", self.ca, "-CAkey", ca_key,
                   "-addext", "basicConstraints=critical,CA:FALSE",
                   "-addext", "subjectAltName=IP:127.0.0.1")

    def _path(self, name):
        return self._place.sub("conf", name)

    @staticmethod
    def _make(certificate, key, name, *more):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=" + name,
                        "-keyout", key, "-out", certificate, *more],
                       check=True, stderr=subprocess.DEVNULL)
        os.chmod(certificate, 0o644)

    def redis_options(self):
        return ["--tls-cert-file", self.certificate, "--tls-key-file", self.key,
                "--tls-ca-cert-file", self.ca, "--tls-auth-clients", "no"]

    def wrap(self, peer):
        """The client's side of a connection."""
        return ssl.create_default_context(cafile=self.ca).wrap_socket(
            peer, server_hostname="127.0.0.1")

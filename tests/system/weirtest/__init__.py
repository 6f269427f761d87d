"""What the system tests stand on: real servers, each a class, in one temporary directory.

A test class makes a Place (the directory), starts the servers that it wants in it, and asks them
with the small clients here. Nothing sleeps to wait for something: a server is ready when it has
answered, and wait_until asks again and again. Nothing outlives a test: servers are stopped by their
process id, and get a signal from the kernel should the test itself be killed.
"""

from weirtest import fcgi, process, sentinel
from weirtest.apache import (ApacheAuthnz, ApacheCgi, ApacheFcgid, ApacheFcgidAuthorizer,
                             ApacheFcgidLogin, ApacheProxy, ApacheProxyPass)
from weirtest.caddy import Caddy
from weirtest.case import Case, TooSlow, attempts, main
from weirtest.client import Zeros, ask
from weirtest.cluster import Cluster
from weirtest.haproxy import HAProxy
from weirtest.lighttpd import (Lighttpd, LighttpdAuthorizer, LighttpdCgi, LighttpdPhpCgi,
                               LighttpdSpawn)
from weirtest.load import Load
from weirtest.metrics import Metrics
from weirtest.nginx import Nginx, NginxAuthRequest
from weirtest.phpfpm import PhpFpm
from weirtest.place import Place
from weirtest.process import wait_until
from weirtest.proxy import Proxy
from weirtest.redis import Redis
from weirtest.sentinel import Watched
from weirtest.uwsgi import Uwsgi
from weirtest.weir import Weir

__all__ = [
    "ApacheAuthnz", "ApacheCgi", "ApacheFcgid", "ApacheFcgidAuthorizer", "ApacheFcgidLogin", "ApacheProxy", "ApacheProxyPass",
    "Caddy", "Case", "Cluster", "HAProxy", "Lighttpd", "LighttpdAuthorizer", "LighttpdCgi",
    "LighttpdPhpCgi", "LighttpdSpawn", "Load", "Metrics", "Nginx", "NginxAuthRequest", "PhpFpm", "Place", "Proxy", "Redis", "TooSlow",
    "Uwsgi", "Watched", "Weir", "Zeros", "ask", "attempts", "fcgi", "main", "process", "sentinel",
    "wait_until",
]

"""What mod_fcgid starts in place of weir, to see what php-fpm gets without it: each connection on
the inherited socket is joined to php-fpm's, byte for byte."""

import os
import select
import socket
import sys


def join(front, back):
    other = {front: back, back: front}
    while other:
        for peer in select.select(list(other), [], [])[0]:
            data = peer.recv(65536)
            if not data:
                return
            other[peer].sendall(data)


def main(path):
    listener = socket.socket(fileno=os.dup(0))
    while True:
        front, _ = listener.accept()
        with front, socket.socket(socket.AF_UNIX) as back:
            back.connect(path)
            join(front, back)


main(sys.argv[1])

# overhear.py: writes down what passes through the interfaces of a network namespace, until it is ended.
# SPDX-License-Identifier: Apache-2.0
"""overhear.py FILE     creates FILE.ready once nothing can pass unheard"""

import pathlib
import socket
import sys

EVERY_PROTOCOL = 3

with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(EVERY_PROTOCOL)) as line, open(sys.argv[1], "wb", buffering=0) as file:
    line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 20)
    pathlib.Path(sys.argv[1] + ".ready").touch()
    while True:
        file.write(line.recv(1 << 17))

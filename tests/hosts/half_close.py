# half_close.py: ends one direction of one of a process's TCP connections, from outside.
# SPDX-License-Identifier: Apache-2.0
"""half_close.py PROCESS NUMBER     of its connections to other addresses, the NUMBERth; exit 1 if there is none"""

import ctypes
import os
import re
import socket
import sys

PIDFD_GETFD = 438

process, number = int(sys.argv[1]), int(sys.argv[2])
connections = []
for name in sorted(os.listdir(f"/proc/{process}/fd"), key=int):
    try:
        if not re.match(r"socket:", os.readlink(f"/proc/{process}/fd/{name}")):
            continue
        taken = ctypes.CDLL(None, use_errno=True).syscall(PIDFD_GETFD, os.pidfd_open(process), int(name), 0)
        connection = socket.socket(fileno=taken)
        if connection.family == socket.AF_INET and connection.getpeername()[0] != connection.getsockname()[0]:
            connections.append(connection)
    except OSError:
        continue  # closed meanwhile, or one that listens
if not connections:
    sys.exit(1)
connections[number % len(connections)].shutdown(socket.SHUT_WR)

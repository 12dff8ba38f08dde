#!/usr/bin/env python3
# run_ranks.py: runs a program on n ranks, by hand, as the README says; fails if one of them does.
# SPDX-License-Identifier: Apache-2.0
import os
import secrets
import socket
import subprocess
import sys


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def main(size, program):
    common = dict(os.environ, WORLD_SIZE=size, MASTER_ADDR="127.0.0.1", MASTER_PORT=free_port(), TUTTI_SECRET=secrets.token_hex(32))
    ranks = [subprocess.Popen([program], env=dict(common, RANK=str(rank))) for rank in range(int(size))]
    try:
        codes = [rank.wait(timeout=50) for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    return max(map(abs, codes))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

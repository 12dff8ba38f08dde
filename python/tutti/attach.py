# attach.py: `python -m tutti.attach NAME`: the terminal for a rank that stands at tutti.breakpoint() and has none.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os
import select
import socket
import sys

from ._process.terminal import user_behind


def attach(name: str) -> None:
    """Passes lines on, both ways, until the debugger is left."""
    with socket.socket(socket.AF_UNIX) as link:
        link.connect(f"\0{name}")
        if (owner := user_behind(link)) != os.getuid():
            raise PermissionError(f"user {owner} listens there, and is not to be talked to")
        sources = [link, sys.stdin]
        while True:
            ready, _, _ = select.select(sources, [], [])
            if link in ready:
                text = link.recv(1 << 16)
                if not text:
                    return
                sys.stdout.buffer.write(text)
                sys.stdout.buffer.flush()
            if sys.stdin in ready:
                typed = os.read(sys.stdin.fileno(), 1 << 16)
                if typed:
                    link.sendall(typed)
                else:
                    sources.remove(sys.stdin)
                    link.shutdown(socket.SHUT_WR)


def main() -> int:
    if len(sys.argv) != 2:
        print("usage: python -m tutti.attach NAME, where NAME is what the rank at its breakpoint says", file=sys.stderr)
        return 2
    try:
        attach(sys.argv[1])
    except OSError as error:
        print(f"no rank waits under the name {sys.argv[1]} on this host for this user: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())

# terminal.py: a terminal for a job, and somebody who reads it and types.
# SPDX-License-Identifier: Apache-2.0
import fcntl
import os
import pty
import re
import select
import subprocess
import termios
import time


# What is debugged, with the rank as its argument.
DEBUGGED = """
import sys
import tutti

world = tutti.init(timeout=20)
secret = 1000 + world.rank
tutti.breakpoint(int(sys.argv[1]))
total = tutti.all_reduce(secret)
print(f"rank {world.rank}: total {total}", flush=True)
"""


class Terminal:
    """A pseudo-terminal that controls one job, and somebody who reads and types."""

    def __init__(self, command, environment):
        self.master, slave = pty.openpty()
        attributes = termios.tcgetattr(slave)
        attributes[3] &= ~termios.ECHO
        termios.tcsetattr(slave, termios.TCSANOW, attributes)

        def take_terminal():
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        self.job = subprocess.Popen(
            [str(word) for word in command],
            env=environment | {"TERM": "dumb"},
            stdin=slave,
            stdout=slave,
            stderr=slave,
            preexec_fn=take_terminal,
        )
        os.close(slave)
        self.seen = ""
        self.transcript = ""

    def expect(self, pattern, seconds=60):
        """Reads until the pattern appears; what came before it is dropped."""
        limit = time.monotonic() + seconds
        while not (found := re.search(pattern, self.seen)):
            assert time.monotonic() < limit, f"no {pattern!r} in {self.seen!r}"
            ready, _, _ = select.select([self.master], [], [], 0.2)
            if ready:
                assert self.read(), f"no {pattern!r} in {self.seen!r}, and the job is over"
        self.seen = self.seen[found.end() :]
        return found

    def read(self):
        """Whether there was more; nothing comes once the job is over."""
        try:
            text = os.read(self.master, 1 << 16).decode(errors="replace")
        except OSError:
            return False
        self.seen += text
        self.transcript += text
        return bool(text)

    def debug(self, rank):
        """Somebody who looks at `secret` on that rank, steps over a collective in which the others take part, and goes on."""
        self.expect(rf"rank {rank} of 2 on")
        self.expect(r"total = tutti.all_reduce\(secret\)")
        self.expect(r"\(Pdb\) ")
        self.type("p secret * 2")
        self.expect(str(2 * (1000 + rank)))
        self.type("n")
        self.expect("print")
        self.type("p 'here', total")
        self.expect("'here', 2001")
        self.type("c")

    def type(self, line):
        os.write(self.master, f"{line}\n".encode())

    def close(self):
        """The exit status, when all has been read."""
        try:
            limit = time.monotonic() + 60
            while time.monotonic() < limit and (not select.select([self.master], [], [], 1)[0] or self.read()):
                pass
            return self.job.wait(timeout=60)
        finally:
            self.job.kill()
            self.job.wait()
            os.close(self.master)

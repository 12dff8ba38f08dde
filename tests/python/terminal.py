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

# in_step.py: the ranks of a test run tell each other how each test went.
# SPDX-License-Identifier: Apache-2.0
"""Every rank runs the same tests in the same order. What they say to each other goes over a socket of its own, and not
through the library, so that a test that breaks the library is still reported by all."""
import contextlib
import hashlib
import json
import os
import socket
import threading
import time

CONNECT_SECONDS = 120  # importing several frameworks on a busy machine takes its time
PATIENCE_SECONDS = 10  # how long a rank whose test failed waits for the others before it ends their calls, too


class OutOfStep(Exception):
    """The ranks are not at the same place of the run, so that it cannot go on."""


class InStep:
    """One per process. Ranks of a group of one have nobody to talk to. `answer_seconds`: longer than a test may take."""

    def __init__(self, answer_seconds, environment=os.environ):
        self.answer_seconds = answer_seconds
        self.rank = int(environment.get("RANK", 0))
        self.size = int(environment.get("WORLD_SIZE", 1))
        self._socket = None
        if self.size == 1:
            return
        address = self._address(environment)
        if self.rank == 0:
            listener = socket_for(address)
            listener.bind(address)
            listener.listen(self.size)
            threading.Thread(target=self._serve, args=(listener,), daemon=True, name="tests in step").start()
        self._socket = connected(address)
        self._heard = b""
        self._say(self.rank)

    @staticmethod
    def _address(environment):
        """In the abstract namespace: no file is left behind. The same for the ranks of one job, and only for them. Ranks on
        several hosts are told an address and a port of rank 0's."""
        if "TUTTI_TESTS_MEET_AT" in environment:
            host, port = environment["TUTTI_TESTS_MEET_AT"].rsplit(":", 1)
            return host, int(port)
        job = ":".join(environment.get(name, "") for name in ("TUTTI_JOB", "TUTTI_SECRET", "MASTER_ADDR", "MASTER_PORT"))
        return "\0tutti-tests-" + hashlib.sha256(job.encode()).hexdigest()

    def exchange(self, place, words, impatient=None):
        """What all ranks said at this place, in the order of ranks. `impatient` is called, once, when the others do not
        come; after that they get the rest of the time.

        Raises OutOfStep if a rank is elsewhere, or gone, or does not come.
        """
        if self._socket is None:
            return [words]
        self._say({"place": place, "words": words})
        line = self._next_line(PATIENCE_SECONDS if impatient else self.answer_seconds)
        if line is None and impatient:
            impatient()
            line = self._next_line(self.answer_seconds - PATIENCE_SECONDS)
        if line is None:
            self._hang_up()
            raise OutOfStep(f"rank {self.rank} is at {place}, but not all others came there within {self.answer_seconds} s")
        return self._answers(place, line)

    def leave(self, status):
        """The end of the run: nobody goes before all have written what they have to say, because the launcher ends
        everybody when one rank fails."""
        if self._socket is not None:
            with contextlib.suppress(OutOfStep):
                self.exchange("the end of the run", status)
            self._hang_up()

    def _say(self, words):
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # found out when the answer is read
            self._socket.sendall(json.dumps(words).encode() + b"\n")

    def _next_line(self, seconds):
        """None when the time is over, and an empty line when rank 0 is gone."""
        deadline = time.monotonic() + seconds
        while b"\n" not in self._heard:
            self._socket.settimeout(max(deadline - time.monotonic(), 0.001))
            try:
                heard = self._socket.recv(1 << 16)
            except TimeoutError:
                return None
            except ConnectionResetError:
                heard = b""
            if not heard:
                return b""
            self._heard += heard
        line, self._heard = self._heard.split(b"\n", 1)
        return line

    def _answers(self, place, line):
        answers = json.loads(line) if line else [{"place": "gone"}]
        elsewhere = [f"rank {rank}: {answer['place']}" for rank, answer in enumerate(answers) if answer["place"] != place]
        if not elsewhere:
            return [answer["words"] for answer in answers]
        self._hang_up()
        raise OutOfStep(f"rank {self.rank} is at {place}, others elsewhere: {', '.join(elsewhere)}")

    def _hang_up(self):
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _serve(self, listener):
        """On rank 0: passes on what the ranks say, round after round. Rank 0 hears last, and so leaves last."""
        with listener, contextlib.ExitStack() as stack:
            ranks = [None] * self.size
            for _ in ranks:
                connection = stack.enter_context(listener.accept()[0])
                lines = stack.enter_context(connection.makefile("r"))
                ranks[int(lines.readline())] = (connection, lines)
            while True:
                said = [lines.readline() for _, lines in ranks]
                if not any(said):
                    return
                answer = "[" + ",".join(line.strip() or '{"place": "gone"}' for line in said) + "]\n"
                for connection, _ in reversed(ranks):
                    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                        connection.sendall(answer.encode())


def socket_for(address):
    return socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET)


def connected(address):
    """Rank 0 may not listen yet."""
    deadline = time.monotonic() + CONNECT_SECONDS
    while True:
        channel = socket_for(address)
        try:
            channel.connect(address)
            return channel
        except ConnectionRefusedError:
            channel.close()
            if time.monotonic() > deadline:
                raise OutOfStep(f"rank 0 of the tests did not listen within {CONNECT_SECONDS} s") from None
            time.sleep(0.02)

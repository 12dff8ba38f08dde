# rank_pool.py: the processes that run PyTorch's tests together, one per rank, seen from outside.
# SPDX-License-Identifier: Apache-2.0

import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

START_SECONDS = 300  # importing torch and its tests takes long on a busy machine


class Rank:
    """One process, the pipe on which it is told what to do, and the one on which it answers."""

    def __init__(self, backend: str, rank: int, ranks: int, log) -> None:
        answers, replies = os.pipe()
        words = [Path(__file__).with_name("rank.py"), backend, rank, ranks, replies]
        program = [sys.executable, *map(str, words)]
        self.process = subprocess.Popen(
            program, stdin=subprocess.PIPE, stdout=log, stderr=log, pass_fds=[replies], start_new_session=True,
            text=True
        )
        os.close(replies)
        self.answers = os.fdopen(answers)

    def tell(self, order: dict) -> None:
        print(json.dumps(order), file=self.process.stdin, flush=True)

    def end(self) -> None:
        """With all processes that the rank has started, which a test may leave behind."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        self.process.stdin.close()
        self.answers.close()


class RankPool:
    """Ranks that run one test after the other."""

    def __init__(self, backend: str, ranks: int, log_path: Path) -> None:
        self._log = open(log_path, "a")
        self._members = [Rank(backend, rank, ranks, self._log) for rank in range(ranks)]
        self.is_usable = True
        first = self._collect(START_SECONDS)
        self.tests = first[0].get("tests", [])
        if not self.tests:
            self.end()
            raise SystemExit(f"the ranks did not start: see {log_path}")

    def run(self, test: str, seconds: float) -> list[dict]:
        """One outcome per rank."""
        with tempfile.TemporaryDirectory(prefix="torch-suite-") as folder:
            for name in ("barrier", "test_dir", "init_dir"):
                Path(folder, name).mkdir()
            for member in self._members:
                member.tell({"test": test, "folder": folder})
            outcomes = self._collect(seconds)
        if any(outcome.get("spoiled") for outcome in outcomes):
            self.is_usable = False
        return outcomes

    def _collect(self, seconds: float) -> list[dict]:
        outcomes: dict[int, dict] = {}
        until = time.monotonic() + seconds
        with selectors.DefaultSelector() as selector:
            for rank, member in enumerate(self._members):
                selector.register(member.answers, selectors.EVENT_READ, rank)
            while len(outcomes) < len(self._members) and (left := until - time.monotonic()) > 0:
                for key, _ in selector.select(left):
                    selector.unregister(key.fileobj)
                    outcomes[key.data] = self._answer_of(key.data)
                    if outcomes[key.data].get("outcome") == "failed":  # the others may wait for it in vain
                        until = min(until, time.monotonic() + 30)
        late = {"outcome": "failed", "text": "no answer in time", "spoiled": True}
        return [outcomes.get(rank, late) for rank in range(len(self._members))]

    def _answer_of(self, rank: int) -> dict:
        line = self._members[rank].answers.readline()
        if line:
            return json.loads(line)
        status = self._members[rank].process.wait()
        return {"outcome": "failed", "text": f"the process ended with status {status}", "spoiled": True}

    def end(self) -> None:
        for member in self._members:
            member.end()
        self._log.close()

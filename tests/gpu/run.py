# run.py: runs what needs a GPU, several processes on one, and prints one table.
# SPDX-License-Identifier: Apache-2.0
"""python3 tests/gpu/run.py [NAME …] [--seconds N]: everything, or the tests whose names begin so. Exit status 77: there is no GPU."""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
PYTHON = HERE.parents[1] / "python"
SKIPPED = 77
NCCL = {"TUTTI_BACKEND": "nccl"}


@dataclass
class Test:
    name: str
    program: str
    ranks: int
    arguments: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    seconds: float = 120.0
    loses_one: bool = False  # a rank is killed


def all_tests() -> list[Test]:
    tests = [Test(f"contract {n}", "contract.py", n) for n in (1, 2, 4, 8)]
    tests += [
        Test("contract by the host", "contract.py", 2, environment={"TUTTI_CUDA_SHARING": "off"}),
        Test(
            "contract, expandable segments",
            "contract.py",
            2,
            environment={"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"},
        ),
        Test("frameworks 2", "frameworks.py", 2),
        Test("training 2", "training.py", 2),
    ]
    tests += [Test(f"killed {seed}", "killed.py", 3, [str(seed)], seconds=90, loses_one=True) for seed in range(50)]
    tests += [Test(f"nccl contract {n}", "contract.py", n, environment=NCCL, seconds=300) for n in (1, 2)]
    tests += [Test("nccl frameworks 2", "frameworks.py", 2, environment=NCCL), Test("nccl training 2", "training.py", 2, environment=NCCL)]
    tests += [Test("nccl refused", "nccl_refused.py", 2), Test("nccl reused", "nccl_reused.py", 2, environment=NCCL)]
    tests += [
        Test(f"nccl killed {seed}", "killed.py", 3, [str(seed)], environment=NCCL, seconds=120, loses_one=True) for seed in range(20)
    ]
    return tests


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Job:
    """The processes of one test, under way."""

    def __init__(self, test: Test) -> None:
        self.test = test
        self.begin = time.monotonic()
        self.output = tempfile.TemporaryFile("w+")
        place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": str(test.ranks)}
        paths = os.pathsep.join([str(PYTHON), *filter(None, [os.environ.get("PYTHONPATH")])])
        self.ranks = [
            subprocess.Popen(
                [sys.executable, str(HERE / test.program), *test.arguments],
                env={
                    "NCCL_HOSTID": f"host-of-rank-{rank}",  # NCCL lets ranks share a GPU where it takes them for several hosts
                    **os.environ, **place, **test.environment, "PYTHONPATH": paths, "PYTHONUNBUFFERED": "1", "PYTHONFAULTHANDLER": "1",
                    "XLA_PYTHON_CLIENT_PREALLOCATE": "false",  # JAX takes most of the GPU otherwise, in every process
                    "RANK": str(rank), "LOCAL_RANK": str(rank), "OMP_NUM_THREADS": "1",
                },
                stdout=self.output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            for rank in range(test.ranks)
        ]

    def is_over(self) -> bool:
        statuses = [rank.poll() for rank in self.ranks]
        late = time.monotonic() - self.begin > self.test.seconds
        failed = not self.test.loses_one and any(status not in (None, 0) for status in statuses)
        if (late or failed) and None in statuses:
            if failed and not late:
                time.sleep(2)  # the others have something to say about it, too
            for rank in self.ranks:
                if rank.poll() is None:
                    os.killpg(rank.pid, signal.SIGKILL)
                    rank.wait()
            if late:
                self.output.write(f"\nnot over after {self.test.seconds} s: {statuses}\n")
        return all(rank.poll() is not None for rank in self.ranks)

    def result(self) -> tuple[bool, float, str]:
        took = time.monotonic() - self.begin
        statuses = sorted(rank.returncode for rank in self.ranks)
        expected = [0] * self.test.ranks
        if self.test.loses_one:
            expected = [-signal.SIGKILL, *expected[1:]]
        self.output.seek(0)
        return statuses == expected, took, self.output.read()


def gpu_bytes_in_use() -> int | None:
    found = subprocess.run(
        ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"], capture_output=True, text=True, check=False
    )
    lines = found.stdout.split()
    return sum(int(line) for line in lines) << 20 if found.returncode == 0 and lines else None


def run(tests: list[Test], until: float, at_once: int) -> list[tuple[Test, bool, float, str]]:
    waiting, running, results = list(tests), [], []
    while waiting or running:
        while waiting and len(running) < at_once and time.monotonic() < until:
            running.append(Job(waiting.pop(0)))
        for job in [job for job in running if job.is_over()]:
            running.remove(job)
            well, took, output = job.result()
            results.append((job.test, well, took, output))
            print(f"{job.test.name:34} {took:7.1f} s  {'ok' if well else 'FAILED'}", flush=True)
            last = [line for line in output.splitlines() if line.strip()]
            for line in last[-25:] if not well else [line for line in last if "checks on" in line or "difference" in line]:
                print(f"    {line[:400]}", flush=True)
        if not running and time.monotonic() >= until:
            results += [(test, False, 0.0, "no time was left") for test in waiting]
            break
        time.sleep(0.05)
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seconds", type=float, default=1200)
    arguments = parser.parse_args()
    before = gpu_bytes_in_use()
    if before is None:
        print("no NVIDIA GPU on this machine (nvidia-smi finds none): nothing to run")
        sys.exit(SKIPPED)
    until = time.monotonic() + arguments.seconds
    wanted = [t for t in all_tests() if not arguments.names or any(t.name.startswith(n) for n in arguments.names)]
    killed = [test for test in wanted if test.loses_one]
    results = run([test for test in wanted if not test.loses_one], until, 1)
    results += run(killed, until, max(1, min(6, (os.cpu_count() or 2) // 3)))
    failed = [test.name for test, well, _, _ in results if not well]
    after = gpu_bytes_in_use()
    print(f"{len(results) - len(failed)} passed, {len(failed)} failed: {', '.join(failed) or 'none'}")
    print(f"memory of the GPU in use before {before >> 20} MiB, after {after >> 20} MiB")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

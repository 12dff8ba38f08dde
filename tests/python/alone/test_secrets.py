# test_secrets.py: neither /proc nor a core file of a rank holds the job's secret, or the memory it shares.
# SPDX-License-Identifier: Apache-2.0
import os
import re
import secrets
import subprocess
import sys

import pytest

PROGRAM = """
import os, sys
import tutti

world = tutti.init(timeout=30)
shared = tutti.empty((1 << 20,), "uint8")
shared[:] = 7
assert tutti.all_reduce(1) == world.size
assert "TUTTI_SECRET" not in os.environ
tutti.finalize()
world = tutti.init(timeout=30)  # once more: the secret is kept where only the library finds it
assert tutti.all_reduce(1) == world.size
found = os.urandom(16)  # to see that the search can find something
print("pid", os.getpid(), shared.__array_interface__["data"][0], found.hex(), flush=True)
tutti.broadcast_object(sys.stdin.readline() if world.rank == 0 else None)
"""

MAPPING = re.compile(rb"^([0-9a-f]+)-([0-9a-f]+) (\S+) \S+ \S+ \S+ *(.*)$")


def mappings(process):
    """Where its memory is, its permissions and its flags, as far as a core file would have it."""
    with open(f"/proc/{process}/smaps", "rb") as file:
        for line in file:
            if found := MAPPING.match(line.strip()):
                begin, end, permissions, name = found.groups()
            elif line.startswith(b"VmFlags:"):
                yield int(begin, 16), int(end, 16), permissions.decode(), name.decode(), line.decode().split()[1:]


def dumped(process):
    """What a core file would hold, mapping by mapping."""
    with open(f"/proc/{process}/mem", "rb", buffering=0) as memory:
        for begin, end, permissions, name, flags in mappings(process):
            if "r" not in permissions or "dd" in flags or name.startswith("[v"):
                continue
            for at in range(begin, end, 1 << 24):
                memory.seek(at)
                yield f"{at:x} {name}", memory.read(min(end - at, (1 << 24) + 64))


@pytest.fixture
def ranks(tuttirun, clean_environment, tmp_path):
    secret = secrets.token_hex(32)
    (tmp_path / "program.py").write_text(PROGRAM)
    job = subprocess.Popen(
        [tuttirun, "-n", "2", "--timeout", "100s", sys.executable, tmp_path / "program.py"],
        env=clean_environment | {"TUTTI_SECRET": secret},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        lines = [job.stdout.readline() for _ in range(2)]
        assert all(" pid " in line for line in lines), lines
        words = [line.split() for line in lines]
        yield secret, [(int(process), int(address), known) for *_, process, address, known in words]
        job.stdin.write("\n")
        job.stdin.close()
        assert job.wait(60) == 0
    finally:
        job.kill()
        job.wait()


def test_a_rank_shows_its_secret_to_nobody(ranks):
    secret, processes = ranks
    for process, shared, known in processes:
        with open(f"/proc/{process}/environ", "rb") as file:
            assert secret.encode() not in file.read()
        sought = {"as text": secret.encode(), "as bytes": bytes.fromhex(secret)}
        found = [
            (where, form, text[max(0, text.find(part) - 64) : text.find(part)])
            for where, text in dumped(process)
            for form, part in sought.items()
            if part in text
        ]
        assert not found, found
        assert any(bytes.fromhex(known) in text for _, text in dumped(process)), "the search finds nothing at all"
        flags = [flags for begin, end, _, _, flags in mappings(process) if begin <= shared < end]
        assert len(flags) == 1 and "dd" in flags[0], "a core file would hold the shared memory"

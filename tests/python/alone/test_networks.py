# test_networks.py: ranks of one machine and one host name in two networks, and in one whose loopback is down.
# SPDX-License-Identifier: Apache-2.0
import os
import secrets
import subprocess
import sys
import time

import pytest

SUM = """
import sys
import numpy as np
import tutti

world = tutti.init(init_method=sys.argv[1] if sys.argv[1:] else "", timeout=40)
print("sum", tutti.all_reduce(np.full(3, world.rank + 1.0)).tolist(), len(tutti.all_gather(np.ones(1 << 20))))
"""


def ip(*words):
    return subprocess.run(["ip", *words], capture_output=True, text=True, timeout=30)


@pytest.fixture
def networks():
    """The names of two network namespaces that a pair of interfaces joins, and the address of the first."""
    names = [f"tutti-test-{os.getpid()}-{side}" for side in "ab"]
    try:
        for name in names:
            if (made := ip("netns", "add", name)).returncode != 0:
                pytest.skip(f"no network namespaces here: {made.stderr.strip()}")
        assert ip("link", "add", "eth0", "netns", names[0], "type", "veth", "peer", "name", "eth0", "netns", names[1]).returncode == 0
        for number, name in enumerate(names, start=1):
            assert ip("-n", name, "addr", "add", f"10.213.7.{number}/24", "dev", "eth0").returncode == 0
            for device in ("lo", "eth0"):
                assert ip("-n", name, "link", "set", device, "up").returncode == 0
        yield names, "10.213.7.1"
    finally:
        for name in names:
            ip("netns", "del", name)


def in_network(name, *words, env):
    command = ["ip", "netns", "exec", name, *map(str, words)]
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def outcomes(processes):
    try:
        return [(*process.communicate(timeout=60), process.returncode) for process in processes]
    finally:
        for process in processes:
            process.kill()


@pytest.mark.parametrize("backend", ["auto", "native"])
@pytest.mark.parametrize("meeting", ["address", "file"])
def test_ranks_of_two_networks_with_one_host_name_reach_each_other(networks, clean_environment, tmp_path, backend, meeting):
    names, address = networks
    (tmp_path / "program.py").write_text(SUM)
    common = clean_environment | {"WORLD_SIZE": "2", "TUTTI_SECRET": secrets.token_hex(32), "TUTTI_BACKEND": backend}
    arguments = [f"file://{tmp_path}/meeting"] if meeting == "file" else []
    if meeting == "address":
        common |= {"MASTER_ADDR": address, "MASTER_PORT": "29511"}
    ranks = [in_network(name, sys.executable, tmp_path / "program.py", *arguments, env=common | {"RANK": str(rank)})
             for rank, name in enumerate(names)]
    for out, err, status in outcomes(ranks):
        assert status == 0, err
        assert out == "sum [3.0, 3.0, 3.0] 2097152\n" and "do not share memory" not in err


def test_a_loopback_that_is_down_is_named_at_once(networks, clean_environment, tmp_path, tuttirun):
    (name, _), _ = networks
    (tmp_path / "program.py").write_text(SUM)
    ip("-n", name, "link", "set", "lo", "down")
    by_hand = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29511"}
    start = time.monotonic()
    commands = [in_network(name, tuttirun, "-n", 2, sys.executable, tmp_path / "program.py", env=clean_environment)]
    for rank in "01":
        commands.append(in_network(name, sys.executable, tmp_path / "program.py", env=clean_environment | by_hand | {"RANK": rank}))
    for _, err, status in outcomes(commands):
        assert status != 0 and "loopback" in err and "ip link set lo up" in err, err
    assert time.monotonic() - start < 20


def test_doctor_tells_networks_apart_and_a_loopback_that_is_down(networks, clean_environment, tuttirun):
    names, _ = networks
    doctor = tuttirun.parents[1] / "cli" / "tutti"

    def network_line():
        shown = outcomes([in_network(name, doctor, "doctor", env=clean_environment) for name in names])
        return [next(line for line in out.splitlines() if " loopback " in line) for out, _, _ in shown]

    first, second = network_line()
    assert "✓" in first and "net:[" in first and first != second
    ip("-n", names[0], "link", "set", "lo", "down")
    first, second = network_line()
    assert "✗" in first and "ip link set lo up" in first and "✓" in second

# four_hosts.py: four hosts with 1 Gbit/s each: the native backend over TCP and over UCX, the backend mpi, and MPI alone.
# SPDX-License-Identifier: Apache-2.0
"""python bench/four_hosts.py [--rate 1gbit] [--sizes 8,64K,1M,16M] [--hosts 4]        (as root; Open MPI, mpi4py, iproute2)

The hosts are network namespaces of this machine, each with a cable to a switch that carries `--rate` both ways, and nothing else in
common but the processors: Open MPI's mpirun starts a process in each of them. Every column is a job of its own; float32, in place.
Prints a table of microseconds per call (median of the slowest rank's), and how long the bytes would take at the full rate: 2 (p−1)/p
of them, in both directions at once. Everything is removed at the end."""

import argparse
import os
import pathlib
import secrets
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
COLUMNS = {
    "native, TCP": {"TUTTI_BACKEND": "native", "TUTTI_LINK": "tcp"},
    "native, UCX over tcp": {"TUTTI_BACKEND": "ucx", "UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "eth0", "UCX_WARN_UNUSED_ENV_VARS": "n"},
    "backend mpi": {"TUTTI_BACKEND": "mpi"},
    "MPI alone": {"FOUR_HOSTS_BARE": "1"},
}
BUDGET_S, CALLS_MAX = 1.5, 400  # for each size


def bytes_of(text):
    return int(text[:-1]) * UNITS[text[-1]] if text[-1] in UNITS else int(text)


def run(*command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout


# In a rank.


def calls_of(bare):
    """all_reduce in place, and the largest of all ranks' numbers."""
    import numpy as np

    if bare:
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        return comm.rank, lambda x: comm.Allreduce(MPI.IN_PLACE, x), lambda seconds: comm.allreduce(seconds, MPI.MAX)
    import tutti

    world = tutti.init(timeout=60)
    return world.rank, lambda x: world.all_reduce(x, out=x), lambda seconds: float(world.all_reduce(np.array([seconds]), op="max")[0])


def measure(sizes):
    import numpy as np

    rank, reduce, slowest = calls_of("FOUR_HOSTS_BARE" in os.environ)
    for size in sizes:
        x = np.zeros(max(1, size // 4), np.float32)
        begin = time.perf_counter()
        for _ in range(3):
            reduce(x)
        calls = max(5, min(CALLS_MAX, int(BUDGET_S / max(1e-6, slowest((time.perf_counter() - begin) / 3)))))
        found = []
        for _ in range(calls):
            slowest(0.0)  # all begin at about the same time
            begin = time.perf_counter()
            reduce(x)
            found.append(time.perf_counter() - begin)
        typical = slowest(statistics.median(found))
        if rank == 0:
            print(f"RESULT {size} {typical * 1e6:.1f}", flush=True)


# The hosts.


class Hosts:
    """Namespaces NAME-h1 … on a switch; entered by `agent HOST COMMAND…`, which mpirun takes for ssh."""

    def __init__(self, count, rate):
        self.name = f"tutti4-{os.getpid()}"
        self.names = [f"h{i + 1}" for i in range(count)]
        self.rate = rate
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tutti-hosts-"))

    def __enter__(self):
        try:
            self._make()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for host in ("switch", *self.names):
            subprocess.run(["ip", "netns", "del", f"{self.name}-{host}"], capture_output=True, check=False)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _make(self):
        switch = f"{self.name}-switch"
        run("ip", "netns", "add", switch)
        run("ip", "-n", switch, "link", "add", "bridge", "type", "bridge")
        run("ip", "-n", switch, "link", "set", "bridge", "up")
        addresses = "127.0.0.1 localhost\n"
        for i, host in enumerate(self.names):
            space, port = f"{self.name}-{host}", f"port{i}"
            run("ip", "netns", "add", space)
            run("ip", "link", "add", "eth0", "netns", space, "type", "veth", "peer", "name", port, "netns", switch)
            run("ip", "-n", switch, "link", "set", port, "master", "bridge", "up")
            run("ip", "-n", space, "addr", "add", f"10.214.7.{i + 1}/24", "dev", "eth0")
            for device in ("lo", "eth0"):
                run("ip", "-n", space, "link", "set", device, "up")
            for where, device in ((space, "eth0"), (switch, port)):  # what goes out, and what comes in
                run("tc", "-n", where, "qdisc", "add", "dev", device, "root", "tbf", "rate", self.rate, "burst", "256kb", "latency", "50ms")
            addresses += f"10.214.7.{i + 1} {host}\n"
        (self.folder / "hosts").write_text(addresses)
        agent = self.folder / "agent"
        agent.write_text(
            "#!/bin/sh\n# agent HOST COMMAND…: as ssh would: in the host's network, under its name, with the list of hosts\n"
            'host=$1; shift\nexec ip netns exec "' + self.name + '-$host" unshare --mount --uts --pid --fork --kill-child --mount-proc sh -c \''
            f"mount --bind {self.folder}/hosts /etc/hosts && hostname \"$0\" && exec sh -c \"$1\"' \"$host\" \"$*\"\n")
        agent.chmod(0o755)
        self.agent = str(agent)

    def run_on_all(self, environment, command):
        """mpirun on the first host, a rank on each."""
        exported = [word for name in environment for word in ("-x", name)]
        line = ["mpirun.openmpi", "--allow-run-as-root", "--host", ",".join(self.names), "-np", str(len(self.names)),
                "--mca", "plm_rsh_agent", self.agent, "--mca", "pml", "ob1", "--mca", "btl", "tcp,self",
                "--mca", "btl_tcp_if_include", "eth0", "--mca", "oob_tcp_if_include", "eth0", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1", *exported, *command]
        quoted = " ".join(f"'{word}'" for word in line)
        return subprocess.run([self.agent, self.names[0], quoted], env=os.environ | environment, capture_output=True, text=True, timeout=300,
                              check=False)


def table_of(hosts, sizes, columns):
    found = {}
    here = pathlib.Path(__file__).resolve()
    for column in columns:
        environment = {"PYTHONPATH": str(here.parents[1] / "python"), "MASTER_ADDR": "10.214.7.1", "MASTER_PORT": str(free_port()),
                       "TUTTI_SECRET": secrets.token_hex(32), "MPI4PY_MPIABI": "openmpi", **COLUMNS[column]}
        words = ",".join(str(size) for size in sizes)
        done = hosts.run_on_all(environment, [sys.executable, str(here), "--in-a-rank", "--sizes", words])
        if done.returncode:
            sys.exit(f"{column}: status {done.returncode}\n{done.stdout}{done.stderr}")
        results = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("RESULT ")]
        found[column] = {int(size): float(micros) for size, micros in results}
    return found


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rate", default="1gbit")
    parser.add_argument("--sizes", default="8,64K,1M,16M")
    parser.add_argument("--hosts", type=int, default=4)
    parser.add_argument("--columns", default=",".join(range_of_columns()), help="numbers from 1: " + "; ".join(COLUMNS))
    parser.add_argument("--in-a-rank", action="store_true", help=argparse.SUPPRESS)
    words = parser.parse_args()
    sizes = [bytes_of(text) for text in words.sizes.split(",")]
    if words.in_a_rank:
        return measure(sizes)
    columns = [list(COLUMNS)[int(number) - 1] for number in words.columns.split(",")]
    with Hosts(words.hosts, words.rate) as hosts:
        found = table_of(hosts, sizes, columns)
    bits = float(words.rate.removesuffix("gbit")) * 1e9 if words.rate.endswith("gbit") else float(words.rate.removesuffix("mbit")) * 1e6
    print(f"all_reduce, {words.hosts} hosts with {words.rate} each, one rank per host, µs per call")
    print(f"| bytes | {' | '.join(columns)} | at the full rate |\n|--:|{'--:|' * (len(columns) + 1)}")
    for size in sizes:
        least = 2 * (words.hosts - 1) / words.hosts * size * 8 / bits * 1e6
        print(f"| {size} | {' | '.join(f'{found[column][size]:.0f}' for column in columns)} | {least:.0f} |")


def range_of_columns():
    return [str(number + 1) for number in range(len(COLUMNS))]


if __name__ == "__main__":
    main()

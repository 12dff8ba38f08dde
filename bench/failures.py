# failures.py: what Tutti, gloo and Open MPI do when something goes wrong, side by side: the table of README.md.
# SPDX-License-Identifier: Apache-2.0
"""`python bench/failures.py` runs each case with each library in processes of its own, and prints a table. A rank that
says nothing for LIMIT_S seconds counts as waiting. Needs torch for gloo, and mpi4py with mpirun for MPI."""
import argparse
import importlib
import importlib.metadata
import json
import os
import pathlib
import platform
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import numpy as np

HERE = pathlib.Path(__file__).resolve()
LIMIT_S = 15.0
CALL_S = 3.0  # the deadline of calls, where a library has one
PACKAGE = HERE.parents[1] / "python"


class Tutti:
    def __init__(self):
        import tutti

        self.world = tutti.init(timeout=CALL_S if os.environ["CASE"] == "late" else 60)
        self.group = lambda ranks: tutti.Group(ranks)

    def all_reduce(self, x, group=None):
        return (group or self.world).all_reduce(x)


class Gloo:
    def __init__(self):
        import datetime

        import torch
        import torch.distributed as dist

        seconds = CALL_S if os.environ["CASE"] == "late" else 60
        dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=seconds))
        self.torch, self.dist = torch, dist
        self.group = dist.new_group

    def all_reduce(self, x, group=None):
        tensor = self.torch.from_numpy(x) if isinstance(x, np.ndarray) else x
        self.dist.all_reduce(tensor, group=group)
        return tensor.numpy()


class Mpi:
    def __init__(self):
        from mpi4py import MPI

        self.MPI, self.world = MPI, MPI.COMM_WORLD
        self.group = lambda ranks: self.world.Create_group(self.world.group.Incl(ranks))

    def all_reduce(self, x, group=None):
        result = np.empty_like(x) if isinstance(x, np.ndarray) else np.empty(4)
        (group or self.world).Allreduce(x, result)
        return result


LIBRARIES = {"tutti": Tutti, "gloo": Gloo, "openmpi": Mpi}
RANKS = {"groups": 3}


def rank_main(library, case, rank, folder):
    """One rank of one case; tells how it went in a file."""
    peer = LIBRARIES[library]()
    peer.all_reduce(np.ones(4))  # all have met, and have connections
    begin = time.monotonic()

    def tell(outcome):
        file = pathlib.Path(folder) / f"{rank}.json"
        file.with_suffix(".part").write_text(json.dumps({"outcome": outcome, "seconds": time.monotonic() - begin}))
        file.with_suffix(".part").rename(file)

    try:
        tell(CASES[case](peer, rank))
    except BaseException as error:
        tell(f"{type(error).__name__}: {error}")
    if case in ("late", "groups", "open ports"):
        time.sleep(LIMIT_S)  # the others look at it meanwhile
    os._exit(0)  # no goodbye: what a library does then is another question


def shapes(peer, rank):
    x = peer.all_reduce(np.ones(1000 + rank))
    peer.all_reduce(np.ones(4))
    return f"no error; the sum of ones begins with {x[0]} and ends with {x[-1]}"


def dies(peer, rank):
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    while True:
        peer.all_reduce(np.ones(1000))


def late(peer, rank):
    if rank == 1:
        time.sleep(LIMIT_S - 2)
    peer.all_reduce(np.ones(1000))
    return "no error"


def bad_argument(peer, rank):
    try:
        peer.all_reduce("text" if rank == 1 else np.ones(4))
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
    else:
        text = "no error"
    try:
        return f"{text}; the next call gives {peer.all_reduce(np.ones(4))[0]}, which is right if 2.0"
    except Exception as error:
        return f"{text}; the next call raises {type(error).__name__}: {error}"


def groups(peer, rank):
    if rank == 2:
        time.sleep(LIMIT_S)
        return "was never asked"
    group = peer.group([0, 1])
    return f"works: {peer.all_reduce(np.ones(4), group)[0]}"


def open_ports(peer, rank):
    del peer
    paths = [f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd")]
    inodes = {os.readlink(path) for path in paths if os.path.lexists(path)}  # one was that of listdir itself
    found = set()
    for name in ("tcp", "tcp6"):
        for line in pathlib.Path(f"/proc/net/{name}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in inodes:
                found.add("every address" if set(fields[1].partition(":")[0]) == {"0"} else "one address")
    return "listens on " + " and ".join(sorted(found)) if found else "listens nowhere"


CASES = {
    "shapes differ": shapes, "dies": dies, "late": late, "bad argument": bad_argument, "groups": groups,
    "open ports": open_ports,
}  # fmt: skip


def open_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start(library, case, folder):
    program = [sys.executable, HERE, "--rank", library, case, folder]
    environment = os.environ | {"PYTHONPATH": str(PACKAGE), "OMP_NUM_THREADS": "1", "CASE": case}
    count = RANKS.get(case, 2)
    if library == "openmpi":
        command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(count), *program]
        return [subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)]
    port = str(open_port())
    return [
        subprocess.Popen(
            program, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
            env=environment | {"RANK": str(rank), "WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port},
        )
        for rank in range(count)
    ]  # fmt: skip


def run(library, case):
    """What rank 0 says of it."""
    with tempfile.TemporaryDirectory() as folder:
        processes = start(library, case, folder)
        file, limit = pathlib.Path(folder) / "0.json", time.monotonic() + LIMIT_S + 30
        while not file.exists() and time.monotonic() < limit and any(p.poll() is None for p in processes):
            time.sleep(0.02)
        said = json.loads(file.read_text()) if file.exists() else None
        ended = all(p.poll() is not None for p in processes)
        for process in processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    if said is None and not ended:
        return "waits"
    if said is None:
        status = processes[0].returncode
        how = f"is ended by {signal.Signals(-status).name}" if status < 0 else f"ends with status {status}"
        return f"{'the job, with mpirun,' if library == 'openmpi' else 'rank 0'} {how}, without an exception"
    first = said["outcome"].replace("\n", " ")
    return f"after {said['seconds']:.2f} s: {first}" if case in ("dies", "late") else first


def versions():
    mpi = subprocess.run(["mpirun", "--version"], capture_output=True, text=True).stdout.split("\n")[0] if shutil.which("mpirun") else ""
    return {
        "tutti": f"Tutti {importlib.import_module('tutti').__version__}",
        "gloo": f"gloo of torch {importlib.metadata.version('torch')}",
        "openmpi": f"{mpi.removeprefix('mpirun (').replace(')', '')}, mpi4py {importlib.metadata.version('mpi4py')}",
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rank", nargs=3, metavar=("LIBRARY", "CASE", "FOLDER"), help=argparse.SUPPRESS)
    parser.add_argument("--cases", nargs="*", default=list(CASES))
    parser.add_argument("--libraries", nargs="*", default=list(LIBRARIES))
    options = parser.parse_args()
    if options.rank:
        library, case, folder = options.rank
        rank = int(os.environ.get("RANK", os.environ.get("OMPI_COMM_WORLD_RANK", "0")))
        rank_main(library, case, rank, folder)
    sys.path.insert(0, str(PACKAGE))
    names = versions()
    print(f"Python {platform.python_version()}, {platform.system()} {platform.release()}, {os.cpu_count()} cores\n")
    print("| | " + " | ".join(names[library] for library in options.libraries) + " |")
    print("|---" * (1 + len(options.libraries)) + "|")
    for case in options.cases:
        print(f"| {case} | " + " | ".join(run(library, case)[:400] for library in options.libraries) + " |", flush=True)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# measure.py: how fast tuttirun starts, ends and passes output on, beside the launchers that are installed. Not a test.
# SPDX-License-Identifier: Apache-2.0
"""measure.py TUTTIRUN: prints the tables of docs/launcher.md. On a busy machine run it as `chrt -f 10 python3 measure.py …`."""
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ENVIRONMENT = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
RANK = """sleep 300 & setsid sleep 300 &
if [ $RANK = $((WORLD_SIZE - 1)) ]; then kill -{signal} $$; fi
while :; do sleep 300; done"""


def seconds(command, stdout=subprocess.DEVNULL):
    begin = time.perf_counter()
    subprocess.run(command, env=ENVIRONMENT, stdout=stdout, stderr=subprocess.DEVNULL, check=False)
    return time.perf_counter() - begin


def measure_starts(tuttirun, rounds=25):
    commands = {"tuttirun": [tuttirun, "-n", "8", "/bin/true"]}
    if shutil.which("mpirun.mpich"):
        commands["MPICH"] = ["mpirun.mpich", "-n", "8", "/bin/true"]
    if shutil.which("mpirun.openmpi"):
        commands["Open MPI"] = ["mpirun.openmpi", "--oversubscribe", "-n", "8", "/bin/true"]
    commands["sh, 8 times &"] = ["sh", "-c", "for i in 1 2 3 4 5 6 7 8; do /bin/true & done; wait"]
    taken = {name: [] for name in commands}
    for _ in range(rounds):  # in turns, so that all see the same machine
        for name, command in commands.items():
            taken[name].append(seconds(command) * 1e3)
    for name, times in taken.items():
        print(f"start of 8 x /bin/true  {name:14} median {statistics.median(times):6.1f} ms, best {min(times):6.1f} ms")


def measure_endings(tuttirun, rounds=5):
    for ranks in (1, 2, 8):
        for signal in ("ABRT", "SEGV", "KILL"):
            command = [tuttirun, "-n", str(ranks), "bash", "-c", RANK.format(signal=signal)]
            worst = max(seconds(command) for _ in range(rounds))
            print(f"rank {ranks - 1} of {ranks} ends by SIG{signal}  everything is gone after {worst * 1e3:.0f} ms (worst of {rounds})")


def peak_memory(process):
    peak = 0
    while process.poll() is None:
        try:
            lines = pathlib.Path(f"/proc/{process.pid}/status").read_text().split("\n")
            peak = max([peak] + [int(line.split()[1]) for line in lines if line.startswith("VmHWM")])
        except OSError:
            pass
        time.sleep(0.02)
    return peak / 1024


def measure_output(tuttirun, rounds=3):
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, "source")
        line = "a line that is about as long as a line of a log file usually is, {}\n"
        source.write_text("".join(line.format(number) for number in range(10_000_000 // 71)))
        pairs = []
        for _ in range(rounds):
            shell = f"for i in $(seq 64); do cat {source} & done | cat"
            with open(pathlib.Path(folder, "out"), "wb") as out:
                cat = seconds(["sh", "-c", shell], out)
            with open(pathlib.Path(folder, "out"), "wb") as out:
                begin = time.perf_counter()
                memory = peak_memory(subprocess.Popen([tuttirun, "-n", "64", "cat", str(source)], stdout=out))
                pairs.append((time.perf_counter() - begin, cat, memory))
        for ours, cat, memory in pairs:
            print(f"64 x {source.stat().st_size / 1e6:.1f} MB into a file  tuttirun {ours:.2f} s, cat {cat:.2f} s, "
                  f"ratio {ours / cat:.2f}, tuttirun's memory at most {memory:.0f} MiB")


if __name__ == "__main__":
    measure_starts(sys.argv[1])
    measure_endings(sys.argv[1])
    measure_output(sys.argv[1])

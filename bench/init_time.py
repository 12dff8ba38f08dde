#!/usr/bin/env python3
# init_time.py: how long a job of many ranks takes to start, meet once and end, beside Open MPI's. Not a test.
# SPDX-License-Identifier: Apache-2.0
"""init_time.py [BUILD] [--ranks 128] [--rounds 3]

Every rank joins, makes one barrier and leaves; the time is that of the whole job, launcher included. Both run in turns, so
that they see the same machine. BUILD is the build folder (build/release), whose number_ranks and tuttirun are measured."""
import argparse
import os
import pathlib
import shutil
import statistics
import subprocess
import tempfile
import time

MPI_PROGRAM = """#include <mpi.h>
int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Barrier(MPI_COMM_WORLD);
  return MPI_Finalize();
}
"""
LIMIT_S = 300


def commands(build, ranks, folder):
    program = [str(build / "tests/number/number_ranks"), "init"]
    tuttirun = [str(build / "src/launch/tuttirun"), "-n", str(ranks)]
    result = {f"tuttirun, {backend}": [*tuttirun, "-B", backend, *program] for backend in ("shm", "native")}
    compiler = shutil.which("mpicc.openmpi") or shutil.which("mpicc")
    launcher = shutil.which("mpirun.openmpi") or shutil.which("mpirun")
    if compiler and launcher:
        source = folder / "mpi_init.c"
        source.write_text(MPI_PROGRAM)
        subprocess.run([compiler, "-O2", source, "-o", folder / "mpi_init"], check=True)
        result["Open MPI"] = [launcher, "--oversubscribe", "-n", str(ranks), str(folder / "mpi_init")]
    else:
        print("Open MPI is not installed: nothing to compare with")
    return result


def measure(command):
    """Seconds, or why there are none."""
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    begin = time.perf_counter()
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, errors="replace",
                              timeout=LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        return None, f"not done after {LIMIT_S} s"
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["without a word"]
        return None, f"status {done.returncode}: {lines[-1][:200]}"
    return time.perf_counter() - begin, ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?", type=pathlib.Path, default=pathlib.Path("build/release"))
    parser.add_argument("--ranks", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    taken, failures = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        choices = commands(options.build.resolve(), options.ranks, pathlib.Path(folder))
        for _ in range(options.rounds):
            for name, command in choices.items():
                seconds, why = measure(command)
                taken.setdefault(name, []).extend([seconds] if seconds is not None else [])
                failures.setdefault(name, []).extend([why] if why else [])
    print(f"{options.ranks} ranks join, meet once and leave, on {os.cpu_count()} cores, {options.rounds} rounds:")
    for name, times in taken.items():
        text = f"median {statistics.median(times):6.2f} s, worst {max(times):6.2f} s" if times else "never"
        print(f"  {name:18} {text}" + "".join(f"\n    failed: {why}" for why in failures[name]))


if __name__ == "__main__":
    main()

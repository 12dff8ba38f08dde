#!/usr/bin/env python3
# lives.py: runs random lives of jobs (interrupts, forks, dropped works, threads, exits) and checks how they went.
# SPDX-License-Identifier: Apache-2.0
"""lives.py [--lives N] [--first S] [--workers N] [--replay SEED]

Runs N lives (40) with the seeds from S on (1). --replay runs one, and tells its steps, notes and stderr. Each worker is a process
that has imported Tutti but not joined a job; it forks the ranks, which saves their imports, and adopts what they leave behind."""
import argparse
import collections
import ctypes
import faulthandler
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "python")]

from draw import draw_life  # noqa: E402
from judge import judge  # noqa: E402

LIFE_SECONDS_MAX = 400
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36


def prctl(option, value):
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def become_rank(life, number, folder):
    """In the forked process. What it raises goes through the worker's frames to the interpreter's own end, as in any program."""
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    for stream, name in ((1, "out"), (2, "err")):
        file = os.open(f"{folder}/rank-{number}.{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(file, stream)
        os.close(file)
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    from rank import Rank

    Rank(life, number, folder).live()
    raise SystemExit(0)


def own_children():
    return [int(word) for word in pathlib.Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()]


def reap(statuses, pids):
    """Takes the statuses of what has ended, adopted processes included."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        if pid in pids:
            statuses[pid] = os.waitstatus_to_exitcode(status)


def supervise(pids):
    """Exit statuses, None for one that had to be stopped; and what was left behind."""
    statuses, end = {}, time.monotonic() + LIFE_SECONDS_MAX
    while len(statuses) < len(pids) and time.monotonic() < end:
        reap(statuses, pids)
        time.sleep(0.002)
    for signal_number, seconds in ((signal.SIGUSR1, 0.5), (signal.SIGKILL, 0)):  # the first shows the stacks
        for pid in pids:
            if pid not in statuses:
                os.kill(pid, signal_number)
        time.sleep(seconds if len(statuses) < len(pids) else 0)
    results = [statuses.get(pid) for pid in pids]
    end = time.monotonic() + 3
    while own_children() and time.monotonic() < end:
        reap(statuses, pids)
        time.sleep(0.002)
    orphans = own_children()
    for pid in orphans:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return results, [f"process {pid}" for pid in orphans]


def shared_memory_files():
    return {name for name in os.listdir("/dev/shm") if "tutti" in name}


def run_life(life):
    """No `with` and no `finally`: a forked rank unwinds through here, too."""
    folder = tempfile.mkdtemp(prefix="tutti-life-")
    os.environ.update(HOME=folder, TUTTI_SECRET="c" * 64)
    before, pids = shared_memory_files(), []
    for number in range(life["size"]):
        pid = os.fork()
        if pid == 0:
            become_rank(life, number, folder)
        pids.append(pid)
    statuses, left_behind = supervise(pids)
    left_behind += [f"/dev/shm/{name}" for name in shared_memory_files() - before]
    ranks = []
    for number, status in enumerate(statuses):
        notes = pathlib.Path(folder, f"rank-{number}.jsonl")
        records = [json.loads(line) for line in notes.read_text().splitlines()] if notes.exists() else []
        joined = [record for record in records if record["step"] >= 0]
        errors = pathlib.Path(folder, f"rank-{number}.err")
        ranks.append({"status": status, "records": joined, "all_records": records,
                      "stderr": errors.read_text(errors="replace") if errors.exists() else ""})
    shutil.rmtree(folder)
    failed_join = [(r["all_records"][0], n) for n, r in enumerate(ranks) if r["all_records"][:1] and r["all_records"][0]["result"] != "fine"]
    violations = [("joining failed", f"rank {n}: {record['text']}") for record, n in failed_join] or judge(life, ranks, left_behind)
    return violations, ranks


def be_a_worker(seeds):
    """Reports one line of JSON per life, on the descriptor that was standard output."""
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    import rank  # noqa: F401  what the ranks need is imported once

    for seed in seeds:
        violations, _ = run_life(draw_life(seed))
        print(json.dumps({"seed": seed, "violations": violations}), flush=True)


def replay(seed):
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    life = draw_life(seed)
    print(f"life {seed}: {life['size']} ranks, {life['backend']}, endings {life['endings']}")
    for index, step in enumerate(life["steps"]):
        print(f"  step {index}: {step}")
    sys.stdout.flush()
    violations, ranks = run_life(life)
    for number, rank in enumerate(ranks):
        print(f"rank {number}: status {rank['status']}")
        for record in rank["all_records"]:
            print(f"  step {record['step']}: {record['result']} in {record['seconds']:.3f} s {record['text']}")
        print("".join(f"  | {line}\n" for line in rank["stderr"].splitlines()), end="")
    report(seed, violations)
    return 1 if violations else 0


def report(seed, violations):
    if not violations:
        return
    print(f"life {seed} violates:")
    for rule, text in violations[:3]:
        print(f"  {rule}: {text[:500]}")
    print(f"  replay: {sys.argv[0]} --replay {seed}", flush=True)


def run_all(options):
    begin, counts, lives, failed = time.monotonic(), collections.Counter(), 0, 0
    workers = []
    for i in range(min(options.workers, options.lives)):
        seeds = list(range(options.first + i, options.first + options.lives, options.workers))
        command = [sys.executable, __file__, "--worker", json.dumps([seeds[0], len(seeds), options.workers])]
        workers.append((seeds, subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)))
    for seeds, worker in workers:
        done = 0
        for line in worker.stdout:
            answer = json.loads(line)
            report(answer["seed"], answer["violations"])
            done, lives, failed = done + 1, lives + 1, failed + bool(answer["violations"])
            counts.update([answer["violations"][0][0]] if answer["violations"] else [])
        if worker.wait() != 0 or done < len(seeds):
            failed += 1
            counts["a worker ended"] += 1
            print(f"a worker ended with status {worker.returncode} in life {seeds[done] if done < len(seeds) else seeds[-1]}")
    for rule, count in sorted(counts.items()):
        print(f"{count:6} × {rule}")
    verdict = "all went as they should" if not failed else f"{failed} did NOT go as they should"
    print(f"{lives} lives in {time.monotonic() - begin:.1f} s: {verdict}")
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lives", type=int, default=40)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--replay", type=int)
    parser.add_argument("--worker", type=json.loads, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        first, count, step = options.worker
        be_a_worker(range(first, first + count * step, step))
        return 0
    return run_all(options) if options.replay is None else replay(options.replay)


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# ablation.py: what each fast path of shared memory gains: the same calls with the path and without it, in turns.
# SPDX-License-Identifier: Apache-2.0
"""A path is switched off by the limits of the table that rank 0 reads (TUTTI_TABLE). For each path, each of its verbs is measured
over the path's sizes; the gain is the geometric mean of time without ÷ time with. A path that gains less than 10 % on every
machine is not worth its code.

    bench/ablation.py --ranks 2 8 16 --bind core                  # all paths
    bench/ablation.py --ranks 2 --paths inline one_shot --rounds 3
"""
import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
from typing import NamedTuple

WORTH = 1.10
NEVER = 1 << 62


class Path(NamedTuple):
    verbs: tuple[str, ...]
    sizes: str
    off: dict[str, int]
    only_ranks: int = 0  # 0: any number
    memory: str = "heap"


PATHS = {
    "inline": Path(("all_reduce", "barrier", "broadcast", "all_gather"), "8:512", {"inline_bytes_max": 4}, only_ranks=2),
    "one_shot": Path(("all_reduce",), "64:4K", {"one_shot_bytes_max": 0}),
    "one_shot_alternating": Path(("all_reduce",), "1K:32K", {"one_shot_bytes_max_alternating": 0}, only_ranks=2),
    "small_chunks_rooted": Path(("broadcast", "reduce", "scatter", "gather"), "256K:8M", {"one_way_chunk_bytes": 128 << 10}),
    "small_chunks_alternating": Path(("all_reduce", "all_to_all"), "128K:8M", {"alternating_chunk_bytes": 128 << 10}, only_ranks=2),
    "direct_copy": Path(("broadcast", "all_gather", "scatter", "gather", "all_to_all"), "128K:32M", {"direct_copy_bytes_min": NEVER},
                        memory="empty"),
    "read_heap": Path(("broadcast", "all_gather", "gather"), "128K:8M", {"read_bytes_max": 0}),
    "read_scattered": Path(("scatter",), "2M:64M", {"read_scattered_bytes_min": NEVER}),
    "read_by_two": Path(("all_gather", "all_to_all", "scatter"), "128K:64M", {"read_by_two_bytes_min": NEVER}, only_ranks=2),
    "direct_reduce": Path(("all_reduce", "reduce_scatter", "reduce"), "512K:64M", {"direct_reduce_bytes_min": NEVER}, memory="empty"),
    "stream": Path(("all_reduce", "all_gather", "all_to_all"), "8M:128M", {"stream_bytes_min": NEVER}),
    "stream_gather": Path(("gather",), "8M:128M", {"stream_gather_bytes_min": NEVER}),
}


def measured(options, path, verb, ranks, table):
    """{bytes: µs} of one run."""
    with tempfile.NamedTemporaryFile("r", suffix=".json") as report:
        command = [options.tutti, "bench", verb, "-n", str(ranks), "--sizes", options.sizes or path.sizes, "--repeats", "3",
                   "--memory", path.memory, "--bind", options.bind, "--json", report.name]
        subprocess.run(command, env={**os.environ, "TUTTI_TABLE": str(table)}, check=True, stdout=subprocess.DEVNULL)
        rows = [json.loads(line) for line in report]
    return {row["bytes"]: row["us_median"] for row in rows if row["library"].startswith("tutti")}


def gain(options, path, verb, ranks, tables):
    """The geometric mean over the sizes of time without ÷ time with, each the median of the rounds, which take turns."""
    times = {on: [] for on in tables}
    for turn in range(options.rounds):
        for on in (True, False) if turn % 2 else (False, True):
            times[on].append(measured(options, path, verb, ranks, tables[on]))
    sizes = times[True][0]
    ratios = [statistics.median(run[size] for run in times[False]) / statistics.median(run[size] for run in times[True])
              for size in sizes]
    return math.exp(statistics.fmean(map(math.log, ratios)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, nargs="+", default=[2])
    parser.add_argument("--paths", nargs="+", choices=PATHS, default=list(PATHS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sizes", help="in place of each path's own")
    parser.add_argument("--bind", default="none", choices=("core", "none"))
    parser.add_argument("--tutti", default=str(pathlib.Path(__file__).parent.parent / "build/release/src/cli/tutti"))
    options = parser.parse_args()
    print(f"| path | ranks | {'gain (time without ÷ time with), by verb':<70} | all | |\n|---|---:|---|---:|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name in options.paths:
            path = PATHS[name]
            tables = {True: pathlib.Path(folder) / "on.json", False: pathlib.Path(folder) / "off.json"}
            tables[True].write_text("{}")
            tables[False].write_text(json.dumps({"shared": path.off}))
            for ranks in options.ranks:
                if path.only_ranks not in (0, ranks):
                    continue
                gains = {verb: gain(options, path, verb, ranks, tables) for verb in path.verbs}
                mean = math.exp(statistics.fmean(map(math.log, gains.values())))
                each = ", ".join(f"{verb} {value:.2f}" for verb, value in gains.items())
                print(f"| {name} | {ranks} | {each} | {mean:.2f} | {'' if mean >= WORTH else 'not worth it here'} |")
                sys.stdout.flush()


if __name__ == "__main__":
    main()

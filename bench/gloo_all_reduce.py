# gloo_all_reduce.py: the work of all_reduce_bench.cpp on torch.distributed's gloo over TCP; one JSON line per size.
# SPDX-License-Identifier: Apache-2.0
import argparse
import json
import os
import sys
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as processes


def microseconds_of(pool, state, calls):
    dist.barrier()
    begin = time.perf_counter()
    for _ in range(calls):
        state[0] += 1
        buffer = pool[state[0] % len(pool)]
        buffer[state[0] % buffer.numel()] = state[0] % 7
        dist.all_reduce(buffer)
    return (time.perf_counter() - begin) * 1e6 / calls


def slowest(values):
    times = torch.tensor(values, dtype=torch.float64)
    dist.all_reduce(times, op=dist.ReduceOp.MAX)
    return times.tolist()


def measure(size_bytes, seconds, ranks):
    repeats = 15
    count = max(2, min(4096, (128 << 20) // size_bytes))
    pool = [torch.zeros(size_bytes // 4) for _ in range(count)]
    state = [0]
    microseconds_of(pool, state, 2)
    once = slowest([microseconds_of(pool, state, 3)])[0]
    calls = max(1, min(5000, int(seconds * 1e6 / repeats / once)))
    times = sorted(slowest([microseconds_of(pool, state, calls) for _ in range(repeats)]))
    if dist.get_rank() == 0:
        median = times[repeats // 2]
        print(json.dumps({"verb": "all_reduce", "dtype": "float32", "bytes": size_bytes, "ranks": ranks, "library": "gloo-tcp",
                          "us_median": round(median, 2), "us_p99": round(times[-1], 2),
                          "algbw_GBps": round(size_bytes / median / 1e3, 3)}), flush=True)


def rank_main(rank, arguments, meeting_point):
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{meeting_point}", rank=rank, world_size=arguments.ranks)
    for size_bytes in arguments.sizes:
        measure(size_bytes, arguments.seconds, arguments.ranks)
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--sizes", type=lambda text: [int(size) for size in text.split(",")], default=[8, 4096, 64 << 20])
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        processes.spawn(rank_main, args=(arguments, os.path.join(folder, "meeting")), nprocs=arguments.ranks)


if __name__ == "__main__":
    sys.exit(main())

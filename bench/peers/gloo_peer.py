# gloo_peer.py: a rank of torch.distributed's gloo for `tutti bench --against`: the work of src/bench/rank.cpp in Python.
# SPDX-License-Identifier: Apache-2.0
"""gloo_peer.py SOCKET NAME MEETING_FILE, with RANK and WORLD_SIZE in the environment."""
import os
import socket
import sys
import time

os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
import torch
import torch.distributed as dist

PERIOD = 1021
TYPES = {"bool": torch.bool, "int8": torch.int8, "int16": torch.int16, "int32": torch.int32, "int64": torch.int64,
         "uint8": torch.uint8, "float16": torch.float16, "bfloat16": torch.bfloat16, "float32": torch.float32,
         "float64": torch.float64, "complex64": torch.complex64, "complex128": torch.complex128}
IN_PLACE_ONLY = ("all_reduce", "reduce")  # torch has no form with two arrays: a copy goes first


def pattern(ranks, dtype):
    """The sum of the patterns of these ranks, two periods long."""
    index = torch.arange(2 * PERIOD) % PERIOD
    total = sum((rank * 3 + index * index + index // 16) % 5 for rank in ranks)
    return total.to(dtype)


def stretch(period, count):
    return period.repeat((count + PERIOD - 1) // PERIOD)[:count]


class Workplace:
    def __init__(self, verb, dtype, count, in_place):
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        self.verb, self.dtype, self.count, self.in_place = verb, TYPES[dtype], count, in_place
        self.block = count // self.size
        blocks = {"all_gather": (self.block, count), "gather": (self.block, count), "scatter": (count, self.block),
                  "reduce_scatter": (count, self.block), "broadcast": (count, 0), "barrier": (0, 0)}
        self.counts = blocks.get(verb, (count, 0 if in_place else count))
        self.own = pattern([self.rank], self.dtype)
        self.slots = []
        self.batch = 0

    def reserve(self, calls):
        while len(self.slots) < calls:
            array = torch.zeros(self.counts[0], dtype=self.dtype)
            self.slots.append((array, torch.zeros(self.counts[1], dtype=self.dtype) if self.counts[1] else array))

    def write(self, array, shift):
        period = self.own[shift % PERIOD:][:PERIOD]
        whole = array.numel() // PERIOD * PERIOD
        if whole:
            array[:whole].view(-1, PERIOD).copy_(period.expand(whole // PERIOD, PERIOD))
        array[whole:] = period[:array.numel() - whole]

    def call(self, array, out, root):
        blocks = lambda tensor: list(tensor.split(self.block))
        if self.verb in IN_PLACE_ONLY and not self.in_place:
            out.copy_(array)
            array = out
        if self.verb == "all_reduce":
            dist.all_reduce(array)
        elif self.verb == "reduce":
            dist.reduce(array, root)
        elif self.verb == "broadcast":
            dist.broadcast(array, root)
        elif self.verb == "all_gather":
            dist.all_gather(blocks(out), array)
        elif self.verb == "gather":
            dist.gather(array, blocks(out) if self.rank == root else None, root)
        elif self.verb == "reduce_scatter":
            dist.reduce_scatter(out, blocks(array))
        elif self.verb == "scatter":
            dist.scatter(out, blocks(array) if self.rank == root else None, root)
        elif self.verb == "all_to_all":
            dist.all_to_all_single(out, array)
        elif self.verb == "permute":
            sent = dist.isend(array, (self.rank + 1) % self.size)
            dist.recv(out, (self.rank - 1) % self.size)
            sent.wait()
        elif self.verb == "barrier":
            dist.barrier()
        elif self.verb == "ping_pong":
            if self.rank == 0:
                dist.send(array, 1)
            dist.recv(out, 1 - self.rank)
            if self.rank == 1:
                dist.send(array, 0)
        else:
            raise RuntimeError(f"gloo has no {self.verb}")

    def run_batch(self, calls):
        self.batch += 1
        for number in range(calls):
            self.write(self.slots[number][0], self.batch + number)
        dist.barrier()
        begin = time.perf_counter()
        for number in range(calls):
            self.call(*self.slots[number], (self.batch + number) % self.size)
        us = (time.perf_counter() - begin) * 1e6 / calls
        return us / 2 if self.verb == "ping_pong" else us

    def expected(self, root):
        """Stretches of the result: (begin, count, ranks, begin in the input)."""
        everyone, whole, block = range(self.size), self.count, self.block
        if self.verb == "all_reduce" or (self.verb == "reduce" and self.rank == root):
            return [(0, whole, everyone, 0)]
        if self.verb == "broadcast":
            return [(0, whole, [root], 0)]
        if self.verb == "all_gather" or (self.verb == "gather" and self.rank == root):
            return [(rank * block, block, [rank], 0) for rank in everyone]
        if self.verb == "reduce_scatter":
            return [(0, block, everyone, self.rank * block)]
        if self.verb == "scatter":
            return [(0, block, [root], self.rank * block)]
        if self.verb == "all_to_all":
            return [(rank * block, block, [rank], self.rank * block) for rank in everyone]
        if self.verb == "permute":
            return [(0, whole, [(self.rank - 1) % self.size], 0)]
        return [(0, whole, [1 - self.rank], 0)] if self.verb == "ping_pong" else []

    def wrong(self, calls):
        total = 0
        for number in range(calls):
            for begin, count, ranks, shift in self.expected((self.batch + number) % self.size):
                period = pattern(ranks, self.dtype)[(self.batch + number + shift) % PERIOD:][:PERIOD]
                total += int((self.slots[number][1][begin:begin + count] != stretch(period, count)).sum())
        return total


def serve(coordinator, name):
    lines = coordinator.makefile("rw")
    print("hello", name, dist.get_rank(), f"gloo of torch {torch.__version__}", file=lines, flush=True)
    bench_case, place = None, None
    for line in lines:
        verb, dtype, count, form, memory, data, calls, batches = line.split()
        try:
            if memory != "heap":
                raise RuntimeError("only heap memory can be measured with gloo")
            if data != "fresh":
                raise RuntimeError("only fresh data can be measured with gloo")
            if (verb, dtype, count, form) != bench_case:
                bench_case, place = (verb, dtype, count, form), None
                place = Workplace(verb, dtype, int(count), form == "in_place")
            place.reserve(int(calls))
            place.run_batch(int(calls))
            times = [place.run_batch(int(calls)) for _ in range(int(batches))]
            print("ok", place.wrong(int(calls)), *(f"{us:.4f}" for us in times), file=lines, flush=True)
        except (RuntimeError, KeyError, ValueError) as error:
            print("trouble", " ".join(str(error).split()), file=lines, flush=True)


def main():
    socket_path, name, meeting_file = sys.argv[1:]
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{meeting_file}", rank=int(os.environ["RANK"]),
                            world_size=int(os.environ["WORLD_SIZE"]))
    if "TUTTI_BENCH_BIND" in os.environ:  # --bind core
        usable = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {usable[dist.get_rank() % len(usable)]})
    with socket.socket(socket.AF_UNIX) as coordinator:
        coordinator.connect(socket_path)
        serve(coordinator, name)
    os._exit(0)  # the others may be gone already: no goodbye that waits for them


if __name__ == "__main__":
    main()

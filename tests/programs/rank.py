# rank.py: one rank of a job that makes random programs of correct calls, one after the other, and compares every result with a model.
# SPDX-License-Identifier: Apache-2.0
"""tuttirun -n 4 rank.py [--programs N] [--first SEED] [--steps N]

The ranks draw the same program. Each draws for itself how its arrays lie in memory, of which framework they are, and in which order it
waits for what it has started. --programs 1 --first SEED replays one."""
import argparse
import os
import pathlib
import random
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "python")]

import model  # noqa: E402
import numpy as np  # noqa: E402
from draw import draw_program  # noqa: E402

import tutti  # noqa: E402

try:
    import torch
except ImportError:
    torch = None

TIMEOUT = 120
TORCH_DTYPES = ("int8", "uint8", "int16", "int32", "int64", "float16", "float32", "float64", "bool", "complex64")


class Wrong(Exception):
    """A result differs from the model's."""


class Program:
    def __init__(self, seed, steps):
        self.rank = tutti.rank()
        self.steps = draw_program(seed, tutti.size(), steps)
        self.lot = random.Random(f"{seed} of rank {self.rank}")
        self.groups = [tutti.world()]
        self.started = []  # (work, step, what it must give)

    def run(self):
        for step in self.steps:
            try:
                self.take(step)
            except Exception as error:
                error.add_note(f"in step {step}")
                raise
        self.lot.shuffle(self.started)
        while self.started:
            self.end_one()

    def take(self, step):
        if "makes" in step:
            self.groups += self.new_groups(step)
        elif self.rank in step["ranks"]:
            index = step["ranks"].index(self.rank)
            getattr(self, "make_" + step["do"], self.make_call)(step, index)

    def new_groups(self, step):
        """One handle per group; None where this rank is no member."""
        mine = None
        if step["do"] == "subgroup":
            mine = tutti.Group(list(step["makes"][0])) if self.rank in step["makes"][0] else None
        elif self.rank in step["ranks"]:
            index = step["ranks"].index(self.rank)
            mine = self.groups[step["group"]].split(color=step["colors"][index], key=-index if step["reverse"] else index)
        return [mine if self.rank in ranks else None for ranks in step["makes"]]

    def laid_out(self, values):
        way = self.lot.choice(("contiguous", "contiguous", "strided", "transposed", "reversed")) if values.ndim else "contiguous"
        if way == "strided":
            room = np.zeros((*values.shape[:-1], 2 * values.shape[-1]), values.dtype)
            room[..., ::2] = values
            return room[..., ::2]
        if way == "transposed":
            return np.ascontiguousarray(values.T).T
        return np.ascontiguousarray(values[::-1])[::-1] if way == "reversed" else values.copy()

    def as_given(self, values):
        """A copy in some layout, of some framework."""
        values = self.laid_out(values)
        as_tensor = torch is not None and self.lot.random() < 0.25 and values.dtype.name in TORCH_DTYPES
        return torch.from_numpy(values) if as_tensor and min(values.strides, default=0) >= 0 else values

    def make_call(self, step, index):
        x = self.as_given(model.given(step, index))
        options = {"op": step["op"]} if step["do"] in ("all_reduce", "reduce", "reduce_scatter", "scan", "exscan") else {}
        if step["do"] in ("reduce", "broadcast", "gather", "scatter"):
            options["root"] = step["root"]
        if step["do"] in ("all_gather", "gather", "scatter", "reduce_scatter"):
            options["axis"] = step["axis"]
            if step.get("sizes") is not None:
                told = step["told"] or step["do"] in ("scatter", "reduce_scatter")
                options |= {"sizes": step["sizes"]} if told else {"uneven": True}
        if step["do"] in ("broadcast", "scatter") and step["told"] and index != step["root"]:
            x = None
        if step["do"] == "all_reduce" and step["in_place"]:
            options["out"] = x
        self.call(step, index, x, **options)

    def make_all_to_all(self, step, index):
        options = {"split_axis": step["axis"], "concat_axis": step["concat_axis"]}
        if step.get("sizes") is not None:
            options["split_sizes"] = step["sizes"][index]
            if step["told"]:
                options["recv_sizes"] = [sizes[index] for sizes in step["sizes"]]
        self.call(step, index, self.as_given(model.given(step, index)), **options)

    def make_permute(self, step, index):
        self.call(step, index, self.as_given(model.given(step, index)), pairs=step["pairs"])

    def make_sendrecv(self, step, index):
        size = len(step["ranks"])
        ends = {"dst": (index + step["distance"]) % size, "src": (index - step["distance"]) % size}
        self.call(step, index, self.as_given(model.given(step, index)), **ends)

    def make_barrier(self, step, index):
        self.call(step, index)

    def make_tree(self, step, index):
        tree = {name: self.laid_out(leaf) for name, leaf in model.tree_given(step, index).items()}
        self.call(step, index, tree, verb="all_reduce", op=step["op"])

    def call(self, step, index, *arguments, verb=None, **options):
        run = getattr(tutti, verb or step["do"])
        result = run(*arguments, group=self.groups[step["group"]], async_op=step["async"], timeout=TIMEOUT, **options)
        if not step["async"]:
            return self.compare(step, result, model.wanted(step, index))
        self.started.append((result, step, model.wanted(step, index)))
        if step["wait_one"]:
            self.end_one(self.lot.randrange(len(self.started)))

    def make_message(self, step, index):
        group = self.groups[step["group"]]
        if index == step["source"]:
            x = self.as_given(model.given(step, index))
            self.started.append((tutti.isend(x, step["destination"], step["tag"], group=group, timeout=TIMEOUT), step, None))
        if index == step["destination"]:
            right = model.given(step, step["source"])
            options = {"out": np.zeros_like(right)} if step["in_place"] else {}
            work = tutti.irecv(step["source"], step["tag"], group=group, timeout=TIMEOUT, **options)
            self.started.append((work, step, right))

    def make_prepared(self, step, index):
        x = model.given(step, index)
        out = np.zeros_like(x)
        call = tutti.prepare("all_reduce", x, op=step["op"], out=out, group=self.groups[step["group"]], timeout=TIMEOUT)
        for _ in range(step["repeats"]):
            out[...] = 0
            call.start()
            call.wait()
            self.compare(step, out, model.wanted(step, index))

    def make_objects(self, step, index):
        members = range(len(step["ranks"]))
        texts = ["x" * (1000 * step["repeats"] * member) for member in members]
        got = tutti.all_gather_object({"from": index, "text": texts[index]}, group=self.groups[step["group"]], timeout=TIMEOUT)
        if got != [{"from": member, "text": texts[member]} for member in members]:
            raise Wrong(f"objects came as {str(got)[:200]}")

    def make_store(self, step, index):
        key = "programs/{}/{}/".format(*step["seed"])
        peer = (index + 1) % len(step["ranks"])
        tutti.store().set(f"{key}{index}", f"of {index}")
        got = tutti.store().get(f"{key}{peer}", timeout=TIMEOUT)
        if got != f"of {peer}".encode():
            raise Wrong(f"the store gave {got!r}")

    def end_one(self, place=-1):
        work, step, right = self.started.pop(place)
        try:
            self.compare(step, work.wait(timeout=TIMEOUT), right)
        except Exception as error:
            error.add_note(f"in the wait for step {step}")
            raise

    def compare(self, step, got, right):
        if right is None:
            return
        pairs = got.items() if isinstance(right, dict) else [(None, got)]
        for name, leaf in pairs:
            told = model.difference(np.asarray(leaf), right if name is None else right[name])
            if told:
                raise Wrong(f"rank {self.rank}: {step['do']}{'' if name is None else ' of leaf ' + name}: {told}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=20)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--steps", type=int, default=100)
    given = parser.parse_args()
    tutti.init(timeout=TIMEOUT)
    begin = time.monotonic()
    for seed in range(given.first, given.first + given.programs):
        try:
            Program(seed, given.steps).run()
        except Exception as error:
            error.add_note(f"replay: --programs 1 --first {seed} --steps {given.steps} on {tutti.size()} ranks")
            raise
    if tutti.rank() == 0:
        backend = os.environ.get("TUTTI_BACKEND", "auto")
        print(f"{given.programs} programs went right on {tutti.size()} ranks, backend {backend}, in {time.monotonic() - begin:.1f} s", flush=True)


if __name__ == "__main__":
    main()

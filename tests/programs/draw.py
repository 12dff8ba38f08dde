# draw.py: a program as a value: the groups, collectives and messages of one job, step by step. By a seed, the same on every rank.
# SPDX-License-Identifier: Apache-2.0
"""A program is a list of steps. A step is a dict with its kind under "do", and under "ranks" who takes part, in the order of the group."""
import random

REDUCING = ("all_reduce", "reduce", "reduce_scatter", "scan", "exscan")
JOINING = ("all_gather", "gather")
SPLITTING = ("scatter", "reduce_scatter")
VERBS = (*REDUCING, *JOINING, "scatter", "broadcast", "all_to_all", "permute", "sendrecv", "barrier")
KINDS = {**dict.fromkeys(VERBS, 2), "message": 6, "tree": 2, "prepared": 2, "objects": 1, "store": 1, "split": 1, "subgroup": 1}

INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
DTYPES = (*INTEGERS, "float16", "float32", "float64", "bool", "complex64")
EXTENTS = (0, 1, 2, 3, 5, 7)
LARGE = (1000, 4096, 30_011, 70_000, 300_007)
LARGE_PER_RANK = 40_000  # elements, where every rank has a part for every other one
GROUPS_MAX = 7


def ops_of(dtype):
    if dtype == "bool":
        return ("band", "bor")
    if dtype == "complex64":
        return ("sum",)
    return ("sum", "product", "min", "max") + (("band", "bor", "bxor") if dtype in INTEGERS else ())


def draw_program(seed, size, length):
    lot = random.Random(f"{seed} {size}")
    groups = [tuple(range(size))]
    steps = []
    for number in range(length):
        kind = lot.choices(list(KINDS), list(KINDS.values()))[0]
        group = lot.randrange(len(groups))
        step = {"do": kind, "seed": (seed, number), "group": group, "ranks": groups[group]}
        if kind in ("split", "subgroup"):
            if len(groups) >= GROUPS_MAX:
                continue
            step["makes"] = draw_groups(lot, kind, step, size)
            groups += step["makes"]
        else:
            step |= draw_call(lot, kind, len(step["ranks"]))
        steps.append(step)
    return steps


def draw_groups(lot, kind, step, size):
    """The new groups' ranks, of which a split makes up to two. Every rank numbers them alike, member or not."""
    if kind == "subgroup":
        members = [rank for rank in range(size) if lot.random() < 0.6] or [lot.randrange(size)]
        lot.shuffle(members)
        return [tuple(members)]
    step["colors"] = [lot.randrange(2) for _ in step["ranks"]]
    step["reverse"] = lot.random() < 0.3
    made = [[rank for rank, color in zip(step["ranks"], step["colors"]) if color == wanted] for wanted in (0, 1)]
    return [tuple(reversed(ranks) if step["reverse"] else ranks) for ranks in made if ranks]


def draw_call(lot, kind, size):
    dtype = lot.choice(DTYPES)
    shape = [lot.choice(EXTENTS) for _ in range(lot.randrange(4))]
    if lot.random() < 0.08:
        shape = [lot.choice(LARGE)]
    if not shape and kind in (*JOINING, *SPLITTING, "all_to_all"):
        shape = [3]
    axis = lot.randrange(len(shape)) if shape else 0
    call = {
        "dtype": dtype, "axis": axis, "op": lot.choice(ops_of(dtype)), "root": lot.randrange(size), "async": lot.random() < 0.5,
        "in_place": lot.random() < 0.3, "wait_one": lot.random() < 0.5, "told": lot.random() < 0.5, "repeats": lot.randint(1, 4)}
    uneven = lot.random() < 0.4
    if kind in (*JOINING, *SPLITTING) and uneven:
        call["sizes"] = [lot.choice((0, 1, 2, 3)) for _ in range(size)]
    elif kind == "all_to_all" and uneven:
        call["axis"] = 0
        call["sizes"] = [[lot.randrange(3) for _ in range(size)] for _ in range(size)]
    if kind in (*SPLITTING, "all_to_all") and not uneven:
        shape[axis] = min(shape[axis], LARGE_PER_RANK) * size
    call["shape"] = tuple(shape)
    call["concat_axis"] = lot.randrange(len(shape)) if shape and not uneven else 0
    destinations = lot.sample(range(size), size)
    call["pairs"] = list(enumerate(destinations))[:lot.randrange(size + 1)]
    call["distance"] = lot.randrange(size)
    call |= {"source": lot.randrange(size), "destination": lot.randrange(size), "tag": lot.randrange(3)}
    return call

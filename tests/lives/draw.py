# draw.py: a life as a value: what the ranks of one job go through, step by step, and how each of them ends. By a seed.
# SPDX-License-Identifier: Apache-2.0
"""A life is a dict: size, backend, steps and endings (one per rank). Each step is a dict with its kind under "do"."""
import random

VERBS = ("all_reduce", "broadcast", "all_gather", "reduce_scatter", "all_to_all", "scan", "barrier")
COUNTS = (1, 10, 1000, 50_000)
FORK_STATES = ("idle", "work", "recv", "blocked")  # what is under way in the parent
CHILDREN = ("exit", "os_exit", "use", "work", "init", "finalize", "raise")  # what the child does before it ends
LEFT_VERBS = ("all_reduce", "broadcast", "all_gather")  # collectives that a rank leaves by an exception
DROPPED = ("all_reduce", "isend", "irecv", "temporary")
MADE = ("split", "subgroup", "shrink")

# What may happen in a life, and how often.
KINDS = {
    "collective": 4, "message": 2, "interrupted_collective": 2, "timed_out_collective": 1, "interrupted_recv": 3, "interrupted_send": 1,
    "interrupted_sendrecv": 1, "interrupted_wait": 2, "interrupted_finalize": 1, "interrupted_making": 3, "interrupted_init": 1,
    "interrupted_prepared": 1, "interrupted_probe": 1, "cancelled": 2, "calling_handler": 2, "threads": 1, "fork": 3,
    "forking_inside": 2, "dropped": 2, "reinit": 1,
}  # fmt: skip

# How a rank ends. The leavers do not take part in the last collective, which the others make.
STAYERS = ("return", "finalize", "work", "isend", "daemon", "daemon_calls", "thread_exit", "atexit_wait", "atexit_raise")
LEAVERS = ("raise", "exit", "with_exit", "os_exit", "thread_os_exit", "sigterm")


def draw_life(seed):
    lot = random.Random(seed)
    size = lot.randint(2, 6)
    life = {"seed": seed, "size": size, "backend": lot.choice(("shm", "native"))}
    life["steps"] = [draw_step(lot, size) for _ in range(lot.randint(1, 6))]
    life["endings"] = draw_endings(lot, size)
    return life


def draw_step(lot, size):
    kind = lot.choices(tuple(KINDS), tuple(KINDS.values()))[0]
    step = {"do": kind, "rank": lot.randrange(size), "count": lot.choice(COUNTS), "seed": lot.randrange(1 << 20)}
    step["peer"] = (step["rank"] + lot.randrange(1, size)) % size
    if kind == "collective":
        step |= {"verb": lot.choice(VERBS), "async": [lot.random() < 0.4 for _ in range(size)],
                 "threads": [lot.random() < 0.2 for _ in range(size)]}
    elif kind == "interrupted_collective":
        step |= {"in_place": lot.random() < 0.5, "verb": lot.choice((*LEFT_VERBS, "tree")), "again_s": draw_again(lot)}
    elif kind == "timed_out_collective":
        step |= {"verb": lot.choice(LEFT_VERBS)}
    elif kind == "interrupted_recv":
        # racing: the message is sent while the receive is interrupted, not after it.
        step |= {"racing": lot.random() < 0.5, "after_s": lot.choice((0.001, 0.005, 0.02)), "again_s": draw_again(lot)}
    elif kind in ("interrupted_send", "interrupted_sendrecv"):
        step |= {"after_s": lot.choice((0.001, 0.02)), "again_s": draw_again(lot)}
    elif kind == "interrupted_making":
        step |= {"what": lot.choice(MADE), "racing": lot.random() < 0.5, "after_s": lot.choice((0.0005, 0.003, 0.01, 0.05)),
                 "again_s": draw_again(lot)}
    elif kind in ("interrupted_init", "interrupted_probe"):
        step |= {"racing": lot.random() < 0.5, "after_s": lot.choice((0.001, 0.01, 0.1)), "again_s": draw_again(lot)}
    elif kind == "interrupted_prepared":
        step |= {"again_s": draw_again(lot)}
    elif kind == "cancelled":
        step |= {"what": lot.choice(("irecv", "isend"))}
    elif kind == "calling_handler":
        step |= {"what": lot.choice(("all_reduce", "recv")), "after_s": lot.choice((0.001, 0.02))}
    elif kind == "forking_inside":
        step |= {"where": lot.choice(("callback", "thread")), "child": lot.choice(("os_exit", "use", "finalize"))}
    elif kind == "interrupted_wait":
        step |= {"what": lot.choice(("all_reduce", "irecv")), "again_s": draw_again(lot)}
    elif kind == "fork":
        state = lot.choice(FORK_STATES)
        children = [child for child in CHILDREN if child != "work" or state in ("work", "recv")]
        step |= {"state": state, "child": lot.choice(children)}
    elif kind == "dropped":
        step |= {"what": lot.choice(DROPPED)}
    return step


def draw_again(lot):
    """When a second interrupt comes after the first, in seconds; 0: none does."""
    return lot.choice((0, 0, 0.0005, 0.01))


def draw_endings(lot, size):
    if lot.random() < 0.4:  # one or two do not take part in the last call
        endings = [lot.choice(("return", "finalize")) for _ in range(size)]
        for rank in lot.sample(range(size), 1 if size < 4 else lot.randint(1, 2)):
            endings[rank] = lot.choice(LEAVERS)
        return endings
    return [lot.choice(STAYERS) for _ in range(size)]


def expected_status(ending):
    return {"raise": 1, "exit": 3, "with_exit": 3, "os_exit": 3, "thread_os_exit": 3, "sigterm": -15}.get(ending, 0)

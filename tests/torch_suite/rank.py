# rank.py: one rank of a pool that runs PyTorch's tests one after the other, told by run.py over a pipe.
# SPDX-License-Identifier: Apache-2.0
"""PyTorch starts new processes for every test, each of which imports torch again; a pool does so once. Each test gets a
process group, temporary folders and an environment of its own all the same.
"""

import faulthandler
import json
import os
import sys
import traceback
import unittest
from datetime import timedelta

import suite

# Tests end a rank with these codes to say "skipped".
SKIP_CODES = range(72, 90)


def run_test(module, cls, name: str, rank: int, folder: str) -> dict:
    """The outcome, as run.py reads it."""
    import torch.distributed as dist
    from torch.testing._internal import common_utils

    environment = dict(os.environ)
    os.environ.update(TEMP_DIR=folder, INIT_METHOD=f"file://{folder}/init_dir/shared_init_file")
    module.INIT_METHOD = os.environ["INIT_METHOD"]
    module.Barrier.barrier_id = 0
    try:
        case = cls(name)
        case.rank, case.file_name = rank, f"{folder}/store"
        seconds = module.CUSTOM_PG_TIMEOUT.get(name, module.default_pg_timeout)
        dist.init_process_group(
            module.BACKEND,
            init_method=case.init_method,
            world_size=int(case.world_size),
            rank=rank,
            timeout=timedelta(seconds=seconds),
        )
        case._barrier()
        common_utils.set_rng_seed()
        getattr(case, name)()
        case._barrier()
        if dist.is_initialized():
            dist.destroy_process_group()
        return {"outcome": "passed"}
    except unittest.SkipTest as reason:
        return ended(dist, "skipped", str(reason))
    except SystemExit as end:
        return ended(dist, "skipped" if end.code in SKIP_CODES else "failed", f"exit code {end.code}")
    except BaseException:
        return ended(dist, "failed", traceback.format_exc())
    finally:
        os.environ.clear()
        os.environ.update(environment)
        dist.set_debug_level_from_env()


def ended(dist, outcome: str, text: str) -> dict:
    """The outcome, once the process group is out of the way of the next test."""
    try:
        if dist.is_initialized():
            dist.destroy_process_group()
    except Exception:
        return {"outcome": outcome, "text": text, "spoiled": True}
    return {"outcome": outcome, "text": text}


def main() -> None:
    backend, rank, ranks, replies = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), os.fdopen(int(sys.argv[4]), "w")
    faulthandler.enable()
    module = suite.load(backend, ranks)
    import torch

    torch.set_num_threads(1)
    cls = suite.case_class(module)
    print(json.dumps({"tests": unittest.TestLoader().getTestCaseNames(cls)}), file=replies, flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        print(f"== {order['test']}", file=sys.stderr, flush=True)
        reply = run_test(module, cls, order["test"], rank, order["folder"])
        sys.stderr.flush()
        print(json.dumps(reply), file=replies, flush=True)


if __name__ == "__main__":
    main()

# torch_groups.py: fixtures of the tests of torch.distributed: a store, a default group, groups to break.
# SPDX-License-Identifier: Apache-2.0
import contextlib
import itertools
import os
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist

_numbers = itertools.count()
_store = None


def shared_store():
    """One store of the whole run, at the port the launcher found; its keys are told apart by a number."""
    global _store
    rank, size = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    if _store is None:
        port = int(os.environ.get("MASTER_PORT", 0))
        _store = dist.TCPStore(os.environ.get("MASTER_ADDR", "127.0.0.1"), port, size, rank == 0, timedelta(seconds=45))
    return dist.PrefixStore(str(next(_numbers)), _store), rank, size


@contextlib.contextmanager
def default_group(backend="tutti", seconds=45):
    """torch.distributed, initialised."""
    store, rank, size = shared_store()
    dist.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=timedelta(seconds=seconds))
    try:
        yield dist.group.WORLD
    finally:
        dist.destroy_process_group()


@pytest.fixture(scope="module")
def torch_world():
    """The default group of a module's tests."""
    with default_group() as group:
        yield group


@contextlib.contextmanager
def own_group(seconds):
    """A group of all ranks that may be broken."""
    group = dist.new_group(timeout=timedelta(seconds=seconds))
    try:
        yield group
    finally:
        dist.destroy_process_group(group)


torch.set_num_threads(1)

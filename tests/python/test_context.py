# test_context.py: what a process knows of its place.
# SPDX-License-Identifier: Apache-2.0
import os
import socket

import pytest

import tutti


def test_the_context_has_every_fact_by_key_and_by_attribute(world, rank, size):
    context = tutti.context()
    assert context is tutti.context()
    expected = {
        "rank": rank,
        "size": size,
        "world_size": size,
        "global_rank": rank,
        "local_rank": rank,
        "local_size": size,
        "node_rank": 0,
        "node_count": 1,
        "root_rank": 0,
        "backend": world.backend,
    }
    for name, value in expected.items():
        assert context[name] == value == getattr(context, name), name
    assert context.host and isinstance(context.host, str)
    assert set(expected) <= set(context) and dict(context)["rank"] == rank
    with pytest.raises(KeyError):
        context["nothing"]
    with pytest.raises(AttributeError):
        context.nothing


def test_the_launcher_and_the_context_agree(world):
    context = tutti.context()
    if "RANK" in os.environ:
        assert context.rank == int(os.environ["RANK"]) and context.world_size == int(os.environ["WORLD_SIZE"])
    assert socket.gethostname()


def test_the_list_of_verbs(world):
    verbs = tutti.verbs()
    for name in verbs:
        assert callable(getattr(tutti, name)), name
        assert getattr(tutti, name).__doc__, name
    collectives = {
        "all_reduce",
        "reduce",
        "broadcast",
        "all_gather",
        "gather",
        "reduce_scatter",
        "scatter",
        "all_to_all",
    }
    others = {"scan", "exscan", "permute", "barrier", "send", "recv", "isend", "irecv", "sendrecv"}
    objects = {"broadcast_object", "all_gather_object", "gather_object", "scatter_object"}
    assert set(verbs) >= collectives | others | objects


def test_groups_have_the_verbs_as_methods(world):
    for name in tutti.verbs():
        assert callable(getattr(world, name)), name


def test_the_connector(world, rank, size):
    connector = tutti.connector()
    assert (connector.rank, connector.size) == (rank, size)
    assert (connector.local_rank, connector.local_size) == (rank, size)
    connector.barrier()
    assert connector.broadcast(f"from {rank}" if rank == 0 else None) == "from 0"


def test_a_second_init_gives_the_same_world(world):
    assert tutti.init() is world is tutti.world()
    assert tutti.is_initialized()

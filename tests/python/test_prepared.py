# test_prepared.py: calls that are prepared once and started again and again.
# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

import tutti


def test_a_prepared_call_is_started_again_with_the_same_arrays(world):
    x = np.zeros(5, np.float32)
    call = tutti.prepare("all_reduce", x, out=x)
    for i in range(1, 10):
        x[:] = i
        call.start()
        assert call.wait() is x
        assert (x == i * world.size).all()


def test_a_prepared_call_takes_other_arrays_of_the_same_shape(world):
    x, other = np.ones((2, 3)), np.full((2, 3), 2.0)
    call = tutti.prepare("all_reduce", x)
    call.start()
    result = call.wait()
    assert (result == world.size).all()
    call.start(other)
    assert call.wait() is result and (result == 2 * world.size).all()
    out = np.empty((2, 3))
    call.start(x, out)
    assert call.wait() is out and (out == world.size).all()
    in_place = tutti.prepare("all_reduce", x, out=x)
    in_place.start(other)
    assert in_place.wait() is other and (other == 2 * world.size).all() and (x == 1).all()


def test_prepared_calls_of_the_other_verbs(world):
    x = np.full(2, world.rank + 1)
    for verb, arguments, expected in [
        ("all_gather", {}, np.repeat(np.arange(world.size) + 1, 2)),
        ("all_gather", {"axis": None}, np.repeat(np.arange(world.size) + 1, 2).reshape(world.size, 2)),
        ("reduce", {"root": world.size - 1, "op": "max"}, world.size if world.rank == world.size - 1 else x),
        ("broadcast", {"root": world.size - 1}, world.size),
        ("scan", {}, (world.rank + 1) * (world.rank + 2) // 2),
        ("permute", {"pairs": [(0, world.size - 1)]}, 1 if world.rank == world.size - 1 else 0),
    ]:
        call = tutti.prepare(verb, x, **arguments)
        for _ in range(2):
            call.start()
            assert (call.wait() == expected).all(), verb
    many = np.arange(2 * world.size)
    call = tutti.prepare("all_to_all", many, split_axis=0, concat_axis=0)
    call.start()
    assert (call.wait() == np.tile([2 * world.rank, 2 * world.rank + 1], world.size)).all()
    barrier = tutti.prepare("barrier")
    barrier.start()
    assert barrier.wait() is None


def test_preparing_is_local_and_what_is_wrong_is_told_at_once(world):
    x = np.zeros(3)
    with pytest.raises(tutti.InvalidArgument):
        tutti.prepare("all_reduce", x, out=np.zeros(4))
    with pytest.raises(tutti.InvalidArgument):
        tutti.prepare("broadcast", x, root=world.size)
    with pytest.raises(tutti.InvalidArgument):
        tutti.prepare("all_reduce", x, colour="red")
    with pytest.raises(tutti.Unsupported, match="sizes"):
        tutti.prepare("all_gather", x, uneven=True, out=np.zeros(3 * world.size))
    with pytest.raises(tutti.Unsupported, match="cannot be prepared"):
        tutti.prepare("all_reduce", [x, x])
    tutti.barrier()


def test_a_prepared_call_refuses_arrays_of_another_shape_and_a_second_start(world):
    x = np.zeros(3)
    call = tutti.prepare("all_reduce", x, out=x)
    with pytest.raises(tutti.InvalidArgument, match="prepared"):
        call.start(np.zeros(4))
    with pytest.raises(tutti.InvalidArgument, match="not started"):
        call.wait()
    assert call.test()
    call.start()
    with pytest.raises(tutti.InvalidArgument, match="not waited for"):
        call.start()
    call.wait()


def test_a_dropped_prepared_call_goes_on(world):
    x = np.ones(1000)
    call = tutti.prepare("all_reduce", x, out=x)
    call.start()
    del call
    tutti.barrier()
    assert (x == world.size).all()


def test_prepared_calls_on_tensors(world):
    torch = pytest.importorskip("torch")
    x = torch.ones(4)
    call = tutti.prepare("all_reduce", x, out=x)
    version = x._version
    call.start()
    assert call.wait() is x and (x == world.size).all()
    assert x._version > version  # autograd notices
    call.start(torch.full((4,), 3.0))
    assert (call.wait() == 3 * world.size).all()
    gathered = tutti.prepare("all_gather", x)
    gathered.start()
    assert gathered.wait().shape == (4 * world.size,)
    with pytest.raises(tutti.Unsupported, match="gradients"):
        tutti.prepare("all_reduce", torch.ones(4, requires_grad=True))
    with pytest.raises(tutti.Unsupported, match="gradients"):
        gathered.start(torch.ones(4, requires_grad=True))

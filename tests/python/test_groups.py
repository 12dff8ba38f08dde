# test_groups.py: groups from groups, meshes, and functions that share their work.
# SPDX-License-Identifier: Apache-2.0
import threading

import numpy as np
import pytest

import references as ref
import tutti


def test_groups_know_their_members(world, rank, size):
    assert world.members == list(range(size)) and (world.rank, world.size) == (rank, size)
    backwards = tutti.Group(list(reversed(range(size))))
    assert backwards.rank == size - 1 - rank
    ref.assert_equal(backwards.all_gather(np.array([rank])), np.arange(size)[::-1].copy())
    assert "Group" in repr(world) and str(size) in repr(world)


@pytest.mark.ranks(2)
def test_only_members_need_call(world, rank, size):
    if rank < 2:
        pair = tutti.Group([1, 0])
        assert pair.rank == 1 - rank
        assert pair.all_reduce(rank + 1) == 3
    assert world.all_reduce(1) == size


def test_split_by_color_and_key(world, rank, size):
    left_out = world.split(color=None if rank else 0, key=0)
    assert (left_out.rank, left_out.size) == ((-1, 0) if rank else (0, 1))
    if rank:
        with pytest.raises(tutti.InvalidArgument, match="left it out"):
            left_out.all_reduce(1.0)
    half = world.split(color=rank // 2, key=rank)
    assert half.members == [r for r in range(size) if r // 2 == rank // 2]
    inner = half.subgroup([half.rank])
    assert inner.members == [rank] and inner.all_reduce(5) == 5


def test_groups_are_used_side_by_side(world, size):
    groups = [world.split(0) for _ in range(3)]
    works = [group.all_reduce(np.full(4, i), async_op=True) for i, group in enumerate(groups)]
    for i, work in reversed(list(enumerate(works))):
        ref.assert_equal(work.wait(), np.full(4, i * size))


def test_threads_other_than_the_main_one_may_call(world, size):
    groups = [world.split(0) for _ in range(2)]
    results = {}

    def work(i):
        results[i] = [groups[i].all_reduce(np.full(3, j)).sum() for j in range(20)]

    threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert results == {i: [3 * j * size for j in range(20)] for i in range(2)}


@pytest.mark.ranks(2)
@pytest.mark.parametrize("verb", ["barrier", "all_reduce"])
def test_the_interpreter_runs_while_a_call_waits(world, rank, size, verb):
    group = world.split(0)
    ticks = 0
    x = np.ones(1)
    for _ in range(3):
        group.all_reduce(x)  # calls that were made before take a quicker way

    def wait_for_the_others():
        group.barrier() if verb == "barrier" else group.all_reduce(x)

    if rank == 0:
        thread = threading.Thread(target=wait_for_the_others)
        thread.start()
        for _ in range(1000):
            ticks += 1  # would never get here if the waiting thread kept the interpreter
        assert thread.is_alive()
    tutti.barrier()
    if rank == 0:
        thread.join(timeout=30)
        assert ticks == 1000 and not thread.is_alive()
    else:
        wait_for_the_others()


def test_a_mesh_of_one_axis(rank, size):
    mesh = tutti.Mesh(data=-1, periodic=("data",))
    assert mesh.shape == {"data": size} and mesh.coordinates == {"data": rank} and len(mesh) == 1
    assert mesh["data"] is mesh["data"]
    assert mesh["data"].all_reduce(1) == size
    assert mesh.neighbour("data") == (rank + 1) % size and mesh.neighbour("data", -1) == (rank - 1) % size
    assert "data" in str(mesh) and repr(mesh) == f"tutti.Mesh(data={size}, periodic=('data',))"
    line = tutti.Mesh(data=-1)
    assert line.neighbour("data") == (rank + 1 if rank + 1 < size else tutti.nobody)
    assert line.neighbour("data", -rank - 1) is tutti.nobody and repr(line) == f"tutti.Mesh(data={size})"
    with pytest.raises(tutti.InvalidArgument, match="periodic names z"):
        tutti.Mesh(data=-1, periodic="z")


@pytest.mark.ranks(4, 4)
def test_a_mesh_of_two_axes(world, rank):
    mesh = tutti.Mesh(data=2, tensor=-1)
    assert mesh.axes == ("data", "tensor") and mesh.shape == {"data": 2, "tensor": 2}
    assert mesh.coordinates == {"data": rank // 2, "tensor": rank % 2}
    assert mesh["tensor"].members == [rank // 2 * 2, rank // 2 * 2 + 1]
    assert mesh["data"].members == [rank % 2, rank % 2 + 2]
    assert mesh["tensor"].all_reduce(rank) == 4 * (rank // 2) + 1
    assert mesh["data", "tensor"].all_reduce(1) == 4
    assert mesh["tensor", "data"].members == [0, 2, 1, 3]
    assert mesh.rank_at(data=1) == 2 + rank % 2 and mesh.rank_at(data=0, tensor=1) == 1
    assert "data" in mesh and list(mesh) == ["data", "tensor"]
    inner = tutti.Mesh(mesh["tensor"], a=2)
    assert inner["a"].all_reduce(1) == 2


def test_sizes_of_meshes_may_be_numpys_numbers(size):
    mesh = tutti.Mesh(data=np.int64(size), tensor=np.uint8(1))
    assert mesh.shape == {"data": size, "tensor": 1}
    assert tutti.Mesh(data=np.int32(-1)).shape == {"data": size}


@pytest.mark.ranks(2)
def test_different_meshes_are_a_mismatch(world, rank):
    group = world.split(0)
    with pytest.raises(tutti.Mismatch, match=r"of the mesh (a|b)=\d+, but rank \d called .* of the mesh (a|b)=\d+"):
        tutti.Mesh(group, **{"a" if rank == 0 else "b": -1})
        group.barrier()


def test_meshes_that_do_not_fit(size):
    for axes in [
        {"data": size + 1},
        {"data": -1, "tensor": -1},
        {},
        {"data": 0},
        {"data": "all"},
        {"data": -1, "x": size + 1},
    ]:
        with pytest.raises(tutti.InvalidArgument, match="[Mm]esh"):
            tutti.Mesh(**axes)
    mesh = tutti.Mesh(data=-1)
    for wrong in [
        lambda: mesh["tensor"],
        lambda: mesh.rank_at(x=0),
        lambda: mesh.rank_at(data=size),
        lambda: mesh.neighbour("x"),
    ]:
        with pytest.raises(tutti.InvalidArgument):
            wrong()


def test_pmap_is_the_function_itself(rank, size):
    for length in [size, 2 * size, 2 * size + 1, 1, 0]:  # shared equally, not, and with nothing for some
        x = ref.make_input(0, (length, 3), "float32")
        seen = []
        y = tutti.pmap(lambda x: seen.append(len(x)) or 2 * x)(x)
        ref.assert_equal(y, 2 * x)
        assert seen == [length // size + (rank < length % size)]


def test_pmap_axes_and_arguments(rank, size):
    x = ref.make_input(0, (4, 2 * size + 1), "float64")
    w = ref.make_input(1, (2 * size + 1,), "float64")

    def scale(x, w, *, factor=1.0, shift=None):
        return {"y": factor * x * w + (0 if shift is None else shift), "sum": w.sum()}

    result = tutti.pmap(scale, in_axes=(1, 0), out_axes=1)(x, w, factor=3.0)
    ref.assert_equal(result["y"], 3 * x * w)
    assert result["sum"].shape == (size,) and result["sum"].sum() == w.sum()
    result = tutti.pmap(scale, in_axes={"x": -1, "w": 0, "shift": 0}, out_axes=-1)(x, w, shift=w)
    ref.assert_equal(result["y"], x * w + w)
    whole = tutti.pmap(lambda x, w: x * w.sum(), in_axes=(0, None))(x, w)
    ref.assert_equal(whole, x * w.sum())
    tree = tutti.pmap(lambda pair: pair[0] + pair[1])((w, w))
    ref.assert_equal(tree, 2 * w)
    stacked = tutti.pmap(lambda x: x.sum(0), out_axes=None)(np.ones((size, 3)))
    ref.assert_equal(stacked, np.ones((size, 3)))


def test_pmap_on_a_group(world, rank, size):
    half = world.split(rank % 2)
    x = np.arange(5.0)
    ref.assert_equal(tutti.pmap(np.sqrt, group=half)(x), np.sqrt(x))


def test_pmap_says_what_does_not_fit(size):
    with pytest.raises(tutti.InvalidArgument, match="argument 1 has length"):
        tutti.pmap(lambda a, b: a)(np.ones(3), np.ones(4))
    with pytest.raises(tutti.InvalidArgument, match="axis 1"):
        tutti.pmap(lambda a: a, in_axes=1)(np.ones(3))
    with pytest.raises(tutti.InvalidArgument, match="2 arguments"):
        tutti.pmap(lambda a: a, in_axes=(0, 0))(np.ones(3))
    assert tutti.all_reduce(1) == size


def test_a_group_may_use_another_backend(world, size):
    plans = tutti.Group(range(size), backend="native")
    assert plans.backend == ("alone" if size == 1 else "native")
    again = world.split(color=0, backend="auto")
    assert again.backend == world.backend
    part = plans.split(color=0)
    assert part.backend == plans.backend  # as the group that it is made of
    for group in (plans, again, part):
        assert (group.all_reduce(np.ones(1000)) == size).all()
    with pytest.raises(tutti.Unsupported, match="backend 'pvm' is not known; the known ones are auto, native, shm, ucx, mpi"):
        tutti.Group(range(size), backend="pvm")


@pytest.mark.ranks(2)
def test_members_that_ask_for_different_backends_all_hear_of_it(rank):
    if rank > 1:
        return
    with pytest.raises(tutti.Mismatch, match="ask for different backends: rank 0 of the world for"):
        tutti.Group([0, 1], backend="native" if rank == 0 else None).barrier()

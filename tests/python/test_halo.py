# test_halo.py: margins filled from the neighbours of a mesh, with gradients, in every framework.
# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

import tutti

OWN = 3


def grid_of(size, periodic=("x",)):
    rows = 2 if size % 2 == 0 else 1
    return tutti.Mesh(y=rows, x=-1, periodic=periodic)


def filled(grid, halo, margins):
    """This rank's cells, told apart by where they lie in the whole; and what they and their margins become."""
    high, wide = OWN * grid.shape["y"], OWN * grid.shape["x"]
    y = grid.coordinates["y"] * OWN - halo + np.arange(OWN + 2 * halo)
    x = grid.coordinates["x"] * OWN - halo + np.arange(OWN + 2 * halo)
    inside_y = (y >= 0) & (y < high) | ("y" in grid.periodic)
    inside_x = (x >= 0) & (x < wide) | ("x" in grid.periodic)
    whole = (y[:, None] % high) * wide + x[None, :] % wide + 1.0
    expected = np.where(inside_y[:, None] & inside_x[None, :], whole, margins)
    own = slice(halo, halo + OWN)
    u = np.full_like(whole, margins)
    u[own, own] = whole[own, own]
    return u, expected


@pytest.mark.parametrize("halo", [1, 3])
@pytest.mark.parametrize("periodic", [(), ("x",), ("y", "x")])
def test_margins_are_what_lies_next_to_them(size, halo, periodic):
    grid = grid_of(size, periodic)
    u, expected = filled(grid, halo, -1.0)
    before = u.copy()
    v = grid.exchange(u, halo=halo)
    assert (v == expected).all() and (u == before).all()
    assert grid.exchange(u, halo=halo, out=u) is u and (u == expected).all()
    layers = np.stack([before, 2 * before], -1).transpose(2, 0, 1)  # strided, with an axis of its own in front
    assert (grid.exchange(layers, halo, axes=(1, 2))[0] == expected).all()


def exchanged_by(kind):
    if kind == "torch":
        torch = pytest.importorskip("torch")
        return lambda grid, u, halo: grid.exchange(torch.tensor(u, requires_grad=True), halo).detach().numpy()
    if kind == "jax":
        jax = pytest.importorskip("jax")
        return lambda grid, u, halo: np.asarray(jax.jit(lambda u: grid.exchange(u, halo))(jax.numpy.asarray(u)))
    tf = pytest.importorskip("tensorflow")
    return lambda grid, u, halo: grid.exchange(tf.constant(u), halo).numpy()


@pytest.mark.parametrize("kind", ["torch", "jax", "tensorflow"])
@pytest.mark.parametrize("periodic", [("x",), ("y", "x")])
def test_frameworks_fill_them_alike(size, kind, periodic):
    grid = grid_of(size, periodic)
    u, expected = filled(grid, 1, 0.0)
    assert (exchanged_by(kind)(grid, u.astype("f4"), 1) == expected).all()


def gradient_by(kind, grid, u, weight):
    """Of the sum over all ranks of weight × what exchange gives."""
    if kind == "torch":
        torch = pytest.importorskip("torch")
        x = torch.tensor(u, requires_grad=True)
        (grid.exchange(x) * torch.tensor(weight)).sum().backward()
        return x.grad.numpy()
    if kind == "jax":
        jax = pytest.importorskip("jax")
        return np.asarray(jax.grad(lambda x: (grid.exchange(x) * weight).sum())(jax.numpy.asarray(u)))
    tf = pytest.importorskip("tensorflow")
    x = tf.Variable(u)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(grid.exchange(x) * weight)
    return tape.gradient(loss, x).numpy()


@pytest.mark.parametrize("kind", ["torch", "jax", "tensorflow"])
def test_the_gradient_of_a_margin_goes_to_its_owner(rank, size, kind):
    """<weight, exchange(v)> summed over the ranks equals <gradient, v> summed over the ranks, for any v."""
    grid = grid_of(size)
    u, _ = filled(grid, 1, 0.5)
    numbers = np.random.default_rng(rank)
    weight, v = numbers.normal(size=u.shape).astype("f4"), numbers.normal(size=u.shape).astype("f4")
    gradient = gradient_by(kind, grid, u.astype("f4"), weight)
    there = tutti.all_reduce((weight * grid.exchange(v)).sum(dtype="f8"))
    back = tutti.all_reduce((gradient * v).sum(dtype="f8"))
    assert np.isclose(there, back, rtol=1e-4, atol=1e-4)
    assert not np.allclose(gradient, weight)


def test_widths_may_be_numpys_numbers(size, rank):
    line = tutti.Mesh(x=-1, periodic=("x",))
    for halo in (np.int64(1), np.array(1), np.array([1])):
        found = line.exchange(np.full(5, float(rank)), halo=halo)
        assert found[0] == (rank - 1) % size and found[-1] == (rank + 1) % size


def test_what_does_not_fit_is_said(size):
    grid = tutti.Mesh(x=-1)
    with pytest.raises(tutti.InvalidArgument, match="no room for margins"):
        grid.exchange(np.ones(5), halo=2)
    with pytest.raises(tutti.InvalidArgument, match="does not exist"):
        grid.exchange(np.array(1.0))
    with pytest.raises(tutti.InvalidArgument, match="out is the array itself"):
        grid.exchange(np.ones(5), out=np.ones(5))
    assert tutti.all_reduce(1) == size


@pytest.mark.ranks(2)
@pytest.mark.parametrize("verb", ["exchange", "neighbour_all_gather", "neighbour_all_to_all"])
def test_what_one_rank_refused_is_not_taken_for_a_part_of_the_next_exchange(world, rank, size, verb):
    """The others' parts of the refused one lay there, and filled the next one of this rank, from then on."""
    ring = tutti.Mesh(world.split(0), x=-1, periodic=("x",))

    def exchange(step):
        return getattr(ring, verb)(np.full(6, float(step)), timeout=20)

    assert exchange(0).max() == 0
    with pytest.raises(tutti.Error) as error:
        if rank == 0:
            with pytest.raises(tutti.InvalidArgument):
                getattr(ring, verb)("no array")
            exchange(2)
        else:
            exchange(1)
        ring.group.barrier(timeout=20)
    assert isinstance(error.value, tutti.Mismatch) and "not in the same exchange" in str(error.value)
    assert tutti.all_reduce(1) == size


@pytest.mark.ranks(2)
def test_a_late_part_of_an_exchange_that_was_given_up_is_not_taken_for_one_of_the_next(world, rank, size):
    ring = tutti.Mesh(world.split(0), x=-1, periodic=("x",))
    if rank == 0:
        with pytest.raises(tutti.Timeout):
            ring.exchange(np.zeros(3), timeout=0.2)
    tutti.barrier()
    with pytest.raises(tutti.Mismatch, match="not in the same exchange|is broken"):
        if rank == 0:
            ring.exchange(np.ones(3), timeout=20)
        else:
            ring.exchange(np.zeros(3), timeout=20)
            ring.exchange(np.ones(3), timeout=20)
        ring.group.barrier(timeout=20)
    assert tutti.all_reduce(1) == size


def test_an_exchange_that_all_ranks_refuse_changes_nothing(rank, size):
    ring = tutti.Mesh(x=-1, periodic=("x",))
    for step in range(300):  # more than numbers go before they begin again
        if step % 3 == 0:
            with pytest.raises(tutti.InvalidArgument):
                ring.exchange(np.ones(3), halo=2)
        found = ring.exchange(np.full(3, 100.0 * step + rank))
        assert found[0] == 100 * step + (rank - 1) % size and found[2] == 100 * step + (rank + 1) % size


def test_columns_of_one_array_side_by_side_do_not_overlap(rank, size):
    u = np.zeros((4, 3))
    u[:, 1] = rank
    tutti.permute(u[:, 1], [(r, (r + 1) % size) for r in range(size)], out=u[:, 0])
    assert (u[:, 0] == (rank - 1) % size).all()


def expected_parts(grid, values_of):
    """values_of(neighbour, index of the part that it sends here), for each neighbour; zeros for nobody."""
    found = []
    for index, axis in enumerate(grid.axes):
        for side, distance in enumerate((-1, 1)):
            neighbour = grid.neighbour(axis, distance)
            found.append(np.zeros(3) if neighbour == tutti.nobody else values_of(neighbour, 2 * index + 1 - side))
    return np.stack(found)


@pytest.mark.parametrize("periodic", [(), ("x",), ("y", "x")])
@pytest.mark.parametrize("kind", ["numpy", "torch", "jax", "tensorflow"])
def test_neighbours_give_their_parts(size, rank, kind, periodic):
    grid = grid_of(size, periodic)
    make = {"numpy": lambda: np.asarray, "torch": lambda: pytest.importorskip("torch").tensor,
            "jax": lambda: pytest.importorskip("jax").numpy.asarray,
            "tensorflow": lambda: pytest.importorskip("tensorflow").constant}[kind]()
    one = np.arange(3, dtype="f4") + 10 * rank
    gathered = grid.neighbour_all_gather(make(one))
    assert (np.asarray(gathered) == expected_parts(grid, lambda peer, part: np.arange(3) + 10 * peer)).all()
    each = np.stack([one + 100 * part for part in range(4)])
    parts = grid.neighbour_all_to_all(make(each))
    assert (np.asarray(parts) == expected_parts(grid, lambda peer, part: np.arange(3) + 10 * peer + 100 * part)).all()


def test_neighbour_parts_have_gradients(size, rank):
    torch = pytest.importorskip("torch")
    grid = grid_of(size, ())
    x = torch.full((2,), float(rank), requires_grad=True)
    weight = torch.arange(4.0)[:, None] + 1
    (grid.neighbour_all_gather(x) * weight).sum().backward()
    # What goes down arrives as an upper neighbour's, and the other way round.
    expected = sum(
        (2 * axis + (2 if distance < 0 else 1)) * (grid.neighbour(name, distance) != tutti.nobody)
        for axis, name in enumerate(grid.axes)
        for distance in (-1, 1)
    )
    assert x.grad.tolist() == [expected, expected]


def test_parts_that_do_not_fit_are_refused(size):
    grid = tutti.Mesh(x=-1)
    with pytest.raises(tutti.InvalidArgument, match="first axis has length 3; it holds a part for each of 2 neighbours"):
        grid.neighbour_all_to_all(np.zeros((3, 2)))
    assert tutti.all_reduce(1) == size

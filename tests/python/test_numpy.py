# test_numpy.py: every verb on NumPy arrays, against NumPy computed from all ranks' inputs.
# SPDX-License-Identifier: Apache-2.0
import os
import random
import threading
import time

import ml_dtypes
import numpy as np
import pytest

import references as ref
import tutti

SOAK = bool(os.environ.get("TUTTI_SOAK"))
SAMPLES = 1000 if SOAK else 60
SHAPES = [(), (1,), (7,), (0,), (3, 0, 2), (5, 3), (2, 3, 4), (1 << 15,)]
LAYOUTS = ["plain", "fortran", "strided", "reversed", "read_only"]


def laid_out(x, layout):
    """The same values, lying differently in memory."""
    if layout == "fortran":
        return np.array(x, order="F")
    if layout == "strided" and x.ndim:
        wide = np.zeros((*x.shape[:-1], 2 * x.shape[-1]), x.dtype)
        wide[..., ::2] = x
        return wide[..., ::2]
    if layout == "reversed" and x.ndim:
        return np.ascontiguousarray(x[::-1])[::-1]
    x = x.copy()
    x.flags.writeable = layout != "read_only"
    return x


def sampled(name, *choices):
    """The same random combinations on every rank."""
    draw = random.Random(name)
    return [tuple(draw.choice(choice) for choice in choices) for _ in range(SAMPLES)]


def inputs_for(size, shape, dtype, salt=""):
    return [ref.make_input(rank, shape, dtype, salt) for rank in range(size)]


def op_argument(op):
    return tutti.premul(0.5) if op == "premul" else op


def out_for(how, expected, x):
    """The array for the result: none, one of its own (dense or strided), or the input itself."""
    if how == "own":
        return np.zeros_like(expected)
    if how == "strided" and expected.ndim:
        return np.zeros((*expected.shape, 2), expected.dtype)[..., 0]
    if how == "in place" and x.flags.writeable and x.shape == expected.shape:
        return x
    return None


def check(call, x, expected, how="none"):
    """Runs call(x, out) and compares; the input stays as it was unless it is the output."""
    out = out_for(how, expected, x)
    before = x.copy()
    result = call(x, out)
    assert (result is out) if out is not None else (result is not x and not np.shares_memory(result, x))
    ref.assert_equal(result, expected)
    if out is not x:
        ref.assert_equal(x, before)


OUTS = ["none", "own", "strided", "in place"]


@pytest.mark.parametrize("verb", ["all_reduce", "reduce", "scan", "exscan"])
def test_reductions_of_every_dtype(world, rank, size, verb):
    for dtype, shape, layout, how in sampled(verb, ref.DTYPES, SHAPES, LAYOUTS, OUTS):
        op = random.Random(f"{dtype}{shape}{layout}").choice(ref.ops_for(dtype))
        if op in ("mean", "premul") and verb in ("scan", "exscan"):
            op = "sum"
        inputs = inputs_for(size, shape, dtype)
        root = len(shape) % size
        if verb == "all_reduce":
            expected = ref.reduced(inputs, op)
        elif verb == "reduce":
            expected = ref.reduced(inputs, op) if rank == root else inputs[rank]
        elif verb == "scan":
            expected = ref.reduced(inputs[: rank + 1], op)
        else:
            expected = ref.reduced(inputs[:rank], op) if rank else ref.identity(inputs[0], op)
        if verb == "exscan" and op in ("min", "max") and dtype in ("float8_e4m3fn", "float8_e5m2"):
            continue  # without infinities the identity is the largest number, which the kernels' tests check
        options = {"root": root} if verb == "reduce" else {}
        function = getattr(tutti, verb)
        x = laid_out(inputs[rank], layout)
        if op == "mean" and size == 3:
            result = function(x, op="mean", **options)  # a third is rounded differently by a product
            np.testing.assert_allclose(
                result.astype("complex128"), expected.astype("complex128"), rtol=float(ml_dtypes.finfo(x.dtype).eps)
            )
        else:
            check(lambda x, out: function(x, op=op_argument(op), out=out, **options), x, expected, how)


def test_broadcast_of_every_dtype(world, rank, size):
    for dtype, shape, layout, how in sampled("broadcast", ref.DTYPES, SHAPES, LAYOUTS, OUTS):
        inputs = inputs_for(size, shape, dtype)
        root = len(shape) % size
        x = laid_out(inputs[rank], layout)
        check(lambda x, out: tutti.broadcast(x, root=root, out=out), x, inputs[root], how)


def test_broadcast_where_only_the_root_has_an_array(rank, size):
    for dtype, shape in [("float32", (5, 3)), ("bfloat16", (7,)), ("int64", ()), ("complex64", (0, 2))]:
        for root in range(size):
            x = ref.make_input(root, shape, dtype)
            ref.assert_equal(tutti.broadcast(x if rank == root else None, root=root), x)


@pytest.mark.parametrize("verb", ["all_gather", "gather"])
def test_joins_along_every_axis(rank, size, verb):
    for dtype, shape, layout, axis, how in sampled(verb, ref.DTYPES, SHAPES, LAYOUTS, [None, 0, 1, -1], OUTS[:3]):
        if axis is not None and not -len(shape) <= axis < len(shape):
            continue
        inputs = inputs_for(size, shape, dtype)
        root = len(shape) % size
        gathers = verb == "all_gather" or rank == root
        expected = ref.joined(inputs, axis) if gathers else inputs[rank]
        options = {"axis": axis} if verb == "all_gather" else {"axis": axis, "root": root}
        function = getattr(tutti, verb)
        check(
            lambda x, out: function(x, out=out, **options),
            laid_out(inputs[rank], layout),
            expected,
            how if gathers else "none",
        )


@pytest.mark.parametrize("verb", ["all_gather", "gather"])
@pytest.mark.parametrize("knows_sizes", [True, False])
def test_joins_of_uneven_arrays(rank, size, verb, knows_sizes):
    for dtype, axis, layout in sampled(verb + "uneven", ref.DTYPES, [0, 1, -1], LAYOUTS)[: 1000 if SOAK else 20]:
        lengths = [(3 * r + 1) % 4 for r in range(size)]  # one of them is 0 from three ranks on
        shapes = [(length, 3) if axis == 0 else (2, length) for length in lengths]
        inputs = [ref.make_input(r, shapes[r], dtype) for r in range(size)]
        options = {"sizes": lengths} if knows_sizes else {"uneven": True}
        result = getattr(tutti, verb)(laid_out(inputs[rank], layout), axis=axis, **options)
        ref.assert_equal(result, ref.joined(inputs, axis) if verb == "all_gather" or rank == 0 else inputs[rank])


@pytest.mark.parametrize("verb", ["reduce_scatter", "scatter"])
def test_splits_along_every_axis(rank, size, verb):
    for dtype, layout, axis, how in sampled(verb, ref.DTYPES, LAYOUTS, [None, 0, 1, -1], OUTS[:3]):
        op = random.Random(f"{dtype}{layout}").choice([op for op in ref.ops_for(dtype) if op != "mean"])
        shape = (size, 3) if axis is None else (2 * size, 3) if axis == 0 else (3, 4 * size)
        inputs = inputs_for(size, shape, dtype)
        whole = ref.reduced(inputs, op) if verb == "reduce_scatter" else inputs[size - 1]
        expected = np.ascontiguousarray(ref.part(whole, rank, size, axis))
        options = {"op": op_argument(op)} if verb == "reduce_scatter" else {"root": size - 1}
        function = getattr(tutti, verb)
        x = laid_out(inputs[rank], layout)
        check(lambda x, out: function(x, axis=axis, out=out, **options), x, expected, how)


@pytest.mark.parametrize("verb", ["reduce_scatter", "scatter"])
def test_splits_into_uneven_parts(rank, size, verb):
    for dtype, axis in sampled(verb + "uneven", ref.DTYPES, [0, 1, -1])[: 1000 if SOAK else 20]:
        sizes = [(2 * r + 3) % 5 for r in range(size)]
        shape = (sum(sizes), 2) if axis == 0 else (2, sum(sizes))
        inputs = inputs_for(size, shape, dtype)
        whole = ref.reduced(inputs, "sum") if verb == "reduce_scatter" else inputs[0]
        expected = ref.part(whole, rank, size, axis, sizes)
        ref.assert_equal(getattr(tutti, verb)(inputs[rank], axis=axis, sizes=sizes), expected)


def test_scatter_where_only_the_root_has_an_array(rank, size):
    for root in range(size):
        x = ref.make_input(root, (2 * size, 3), "float64")
        ref.assert_equal(tutti.scatter(x if rank == root else None, root=root), ref.part(x, rank, size, 0))
        sizes = [r + 1 for r in range(size)]
        x = ref.make_input(root, (sum(sizes), 3), "int16")
        result = tutti.scatter(x if rank == root else None, root=root, sizes=sizes if rank == root else None)
        ref.assert_equal(result, ref.part(x, rank, size, 0, sizes))


def test_all_to_all_along_every_pair_of_axes(rank, size):
    for dtype, layout, split, concat in sampled("all_to_all", ref.DTYPES, LAYOUTS, [0, 1, -1], [0, 1, 2]):
        shape = (2 * size, 3 * size, size)
        inputs = inputs_for(size, shape, dtype)
        result = tutti.all_to_all(laid_out(inputs[rank], layout), split_axis=split, concat_axis=concat)
        ref.assert_equal(result, ref.exchanged(inputs, rank, size, split, concat))


def test_all_to_all_of_uneven_parts(rank, size):
    def sizes_of(source):
        return [(source + 2 * destination) % 3 for destination in range(size)]

    received = [sizes_of(source)[rank] for source in range(size)]
    for dtype, knows in sampled("uneven exchange", ref.DTYPES, [True, False])[: 1000 if SOAK else 20]:
        inputs = [ref.make_input(r, (sum(sizes_of(r)), 2), dtype) for r in range(size)]
        options = {"recv_sizes": received} if knows else {}
        result = tutti.all_to_all(inputs[rank], split_sizes=sizes_of(rank), **options)
        ref.assert_equal(result, ref.exchanged(inputs, rank, size, 0, 0, sizes_of))


def test_permute_and_sendrecv(rank, size):
    for dtype, shape, layout in sampled("permute", ref.DTYPES, SHAPES, LAYOUTS)[: 1000 if SOAK else 30]:
        inputs = inputs_for(size, shape, dtype)
        x = laid_out(inputs[rank], layout)
        pairs = [(r, r + 1) for r in range(size - 1)]
        expected = inputs[rank - 1] if rank else np.zeros_like(inputs[0])
        ref.assert_equal(tutti.permute(x, pairs), expected)
        neighbours = {"dst": (rank + 1) % size, "src": (rank - 1) % size}
        ref.assert_equal(tutti.sendrecv(x, **neighbours), inputs[(rank - 1) % size])


def test_a_thread_may_wait_for_what_another_sends(rank):
    for turn in range(20):
        got = np.zeros(3)
        waiting = threading.Thread(target=tutti.recv, kwargs={"out": got, "src": rank, "tag": 70}, daemon=True)
        waiting.start()
        time.sleep(turn * 0.0002)  # while the other tries to be over at once, and after that
        tutti.send(np.full(3, 5.0 + turn), dst=rank, tag=70)
        waiting.join(30)
        np.testing.assert_array_equal(got, np.full(3, 5.0 + turn))


@pytest.mark.ranks(2)
def test_messages_of_every_dtype(rank, size):
    for dtype, shape, layout, tag in sampled("messages", ref.DTYPES, SHAPES, LAYOUTS, [0, 1, 77])[
        : 4000 if SOAK else 40
    ]:
        x = ref.make_input(0, shape, dtype)
        if rank == 0:
            tutti.send(laid_out(x, layout), dst=1, tag=tag)
        elif rank == 1:
            ref.assert_equal(tutti.recv(src=0, tag=tag), x)
            # `like` is left as it is; `out` is filled
        if rank == 0:
            work = tutti.isend(x, 1, tag=tag)
            work.wait()
        elif rank == 1:
            buffer = np.zeros_like(x)
            work = tutti.irecv(out=buffer, src=None, tag=tag)
            assert work.wait() is buffer and work.source == 0
            ref.assert_equal(buffer, x)


@pytest.mark.ranks(2)
def test_messages_that_are_refused_leave_the_others_alone(rank, size):
    fixed = laid_out(np.ones(3), "read_only")
    refused = [
        (lambda: tutti.recv(out=fixed, src=0), "cannot be written to"),
        (lambda: tutti.recv(np.ones(3)), "an array to receive into is out="),
        (lambda: tutti.recv(0, like=np.ones(3), out=np.ones(3)), "not both"),
        (lambda: tutti.recv(src=size), "not in the group"),
        (lambda: tutti.send(np.ones(3), dst=size), "not in the group"),
        (lambda: tutti.send(np.array(["words"]), dst=0), "elements have to be numbers"),
    ]
    for call, reason in refused:
        with pytest.raises(tutti.InvalidArgument, match=reason):
            call()
    x = np.arange(6.0).reshape(2, 3)
    if rank == 0:
        tutti.send(x.T, dst=1, group=tutti.world(), timeout=30)
    elif rank == 1:
        wide = np.zeros((3, 4))
        assert tutti.recv(out=wide[:, ::2], group=tutti.world(), timeout=30).base is wide
        ref.assert_equal(wide[:, ::2], x.T)
        ref.assert_equal(wide[:, 1::2], np.zeros((3, 2)))


def test_asynchronous_calls_overlap_and_keep_their_results(rank, size):
    inputs = [inputs_for(size, (17,), "float32", salt) for salt in range(10)]
    works = [tutti.all_reduce(each[rank], async_op=True) for each in inputs]
    for work, each in reversed(list(zip(works, inputs, strict=True))):
        ref.assert_equal(work.wait(timeout=30), ref.reduced(each, "sum"))
        assert work.test() and work.wait() is work.wait()
    gathered = tutti.all_gather(np.full(rank + 1, rank), uneven=True, async_op=True).wait()
    ref.assert_equal(gathered, np.repeat(np.arange(size), np.arange(1, size + 1)))


def test_dropped_work_keeps_its_arrays(rank, size):
    for i in range(20):
        tutti.all_reduce(np.full(1000, i), async_op=True)
    ref.assert_equal(tutti.all_reduce(np.ones(3)), np.full(3, float(size)))


def test_groups_other_than_the_world(world, rank, size):
    odd = world.split(color=rank % 2, key=-rank)
    members = [r for r in reversed(range(size)) if r % 2 == rank % 2]
    assert odd.members == members and odd.rank == members.index(rank)
    inputs = inputs_for(size, (5,), "float64")
    mine = [inputs[r] for r in members]
    ref.assert_equal(odd.all_reduce(inputs[rank]), ref.reduced(mine, "sum"))
    ref.assert_equal(tutti.all_gather(inputs[rank], group=odd), ref.joined(mine, 0))
    ref.assert_equal(tutti.broadcast(inputs[rank], root=len(members) - 1, group=odd), mine[-1])


def test_results_of_a_group_of_one_never_alias(world, rank):
    alone = world.subgroup([rank])
    x = np.arange(6.0).reshape(2, 3)
    for verb in [
        "all_reduce",
        "reduce",
        "broadcast",
        "all_gather",
        "gather",
        "reduce_scatter",
        "scatter",
        "all_to_all",
        "scan",
    ]:
        result = getattr(tutti, verb)(x, group=alone)
        ref.assert_equal(result, x)
        assert not np.shares_memory(result, x), verb


@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_numbers_scalars_and_subclasses_come_back_as_their_kind(rank, size):
    total = size * (size - 1) // 2
    assert tutti.all_reduce(rank) == total and type(tutti.all_reduce(rank)) is int
    assert type(tutti.all_reduce(float(rank), op="mean")) is float
    assert tutti.all_reduce(1j * rank) == 1j * total
    assert tutti.all_reduce(rank == 0) is True
    scalar = tutti.all_reduce(np.float32(rank))
    assert scalar == total and type(scalar) is np.float32
    ref.assert_equal(tutti.all_gather(rank, axis=None), np.arange(size))
    matrix = tutti.all_reduce(np.matrix([[rank, 1]]))
    assert type(matrix) is np.matrix and matrix.tolist() == [[total, size]]
    assert tutti.all_reduce(rank, async_op=True).wait() == total


def test_memory_that_local_peers_read(world, rank, size):
    x = tutti.empty((3, 5), "float32", like=np)
    assert type(x) is np.ndarray and x.shape == (3, 5) and x.dtype == np.float32
    x[...] = rank
    ref.assert_equal(tutti.all_reduce(x), np.full((3, 5), size * (size - 1) / 2, "float32"))
    assert tutti.empty((0, 2), "bfloat16").shape == (0, 2)
    with pytest.raises(tutti.InvalidArgument, match="shape='3' is neither a number nor"):
        world.empty("3")
    of_group = world.empty((2, 3), np.float64)
    of_group[:] = rank
    assert of_group.shape == (2, 3) and world.empty(4).dtype == np.float32
    ref.assert_equal(world.all_reduce(of_group, out=of_group), np.full((2, 3), float(sum(range(size)))))


def test_large_arrays(rank, size):
    count = (64 << 20) // 4 if SOAK else 1 << 20
    x = np.full(count, rank + 1, "float32")
    tutti.all_reduce(x, out=x)
    assert (x == size * (size + 1) / 2).all()

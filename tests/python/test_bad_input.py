# test_bad_input.py: what people get wrong, and what they are told.
# SPDX-License-Identifier: Apache-2.0
import datetime
import pickle

import numpy as np
import pytest

import tutti


def raises(text, kind=tutti.InvalidArgument):
    return pytest.raises(kind, match=text)


REFUSED = [
    (np.array([object()]), "object"),
    (np.array(["text"]), "<U4"),
    (np.array([b"text"]), "S4"),
    (np.array([datetime.datetime(2026, 1, 1)], "M8[s]"), "datetime64"),
    (np.zeros(2, [("x", "f4"), ("y", "i4")]), "dtype"),
    (np.zeros(2, np.longdouble), "longdouble|float128"),
    (np.ones(3, ">f4"), "byte order"),
    (np.ma.masked_array([1.0, 2.0], [True, False]), "mask"),
    ("text", "broadcast_object"),
    (b"bytes", "broadcast_object"),
    ({1, 2}, "broadcast_object"),
    (object(), "not an array"),
    (np.ndarray, "instance"),
    ([np.ones(1), "text"], r"str at \[1\]"),
    ({"a": {"b": object()}}, r"object at \['a'\]\['b'\]"),
    (1 << 70, "64 bits"),
]


@pytest.mark.parametrize("x, text", REFUSED, ids=[str(i) for i in range(len(REFUSED))])
def test_what_is_no_array_is_refused_and_the_group_goes_on(size, x, text):
    with raises(text):
        tutti.all_reduce(x)
    assert tutti.all_reduce(1) == size


@pytest.mark.ranks(2)
@pytest.mark.parametrize("x", [np.array([object()]), "text", [np.ones(1), object()], np.ones(3, ">f4")], ids=range(4))
def test_a_refusal_on_one_rank_is_told_to_the_others(rank, size, x):
    with pytest.raises(tutti.InvalidArgument if rank == 0 else tutti.Aborted):
        tutti.all_reduce(x if rank == 0 else np.ones(3), timeout=20)
    assert tutti.all_reduce(1) == size


WRONG_ON_ONE_RANK = {
    "op": (lambda x: tutti.all_reduce(x, op="SUM"), tutti.all_reduce),
    "op, a list": (lambda x: tutti.all_reduce(x, op=["sum"]), tutti.all_reduce),
    "op of a scan": (lambda x: tutti.scan(x, op="no such op"), tutti.scan),
    "root": (lambda x: tutti.broadcast(x, root="0"), tutti.broadcast),
    "root, an array": (lambda x: tutti.gather(x, root=np.zeros(2)), tutti.gather),
    "root of objects": (lambda x: tutti.broadcast_object(1, root="0"), lambda x: tutti.broadcast_object(1)),
    "axis": (lambda x: tutti.all_gather(x, axis="0"), tutti.all_gather),
    "sizes": (lambda x: tutti.all_gather(x, sizes=8), tutti.all_gather),
    "pairs": (lambda x: tutti.permute(x, "ab"), lambda x: tutti.permute(x, [(0, 0)])),
    "out": (lambda x: tutti.all_reduce(x, out=[0.0] * 8), tutti.all_reduce),
    "weight": (lambda x: tutti.average(x, weight="a"), lambda x: tutti.average(x, weight=1.0)),
    "color": (lambda x: tutti.init().split("a"), lambda x: tutti.init().split(0)),
    "key": (lambda x: tutti.init().split(0, key=None), lambda x: tutti.init().split(0)),
    "an option of split": (lambda x: tutti.init().split(0, keys=1), lambda x: tutti.init().split(0)),
    "backend of split": (lambda x: tutti.init().split(0, backend="tcp"), lambda x: tutti.init().split(0)),
    "backend of split, no name": (lambda x: tutti.init().split(0, backend=5), lambda x: tutti.init().split(0)),
    "backend of a group": (lambda x: tutti.Group(range(len(x) // 12), backend="tcp"), lambda x: tutti.Group(range(len(x) // 12))),
    "size of a mesh": (lambda x: tutti.Mesh(a=len(x) + 1), lambda x: tutti.Mesh(a=-1)),
    "size of a mesh, no number": (lambda x: tutti.Mesh(a="all"), lambda x: tutti.Mesh(a=-1)),
    "periodic axes": (lambda x: tutti.Mesh(a=-1, periodic="b"), lambda x: tutti.Mesh(a=-1)),
    "a leaf of a tree": (lambda x: tutti.reduce_scatter([x[:-1], x, x]), lambda x: tutti.reduce_scatter([x, x, x])),
    "a leaf, async": (lambda x: tutti.all_to_all([x, x[:-1], x]), lambda x: tutti.all_to_all([x, x, x], async_op=True).wait()),
    "pmap": (lambda x: tutti.pmap(lambda part: 1 / 0)(x), tutti.pmap(lambda part: part)),
}


@pytest.mark.ranks(2)
@pytest.mark.parametrize("what", WRONG_ON_ONE_RANK)
def test_an_argument_that_is_wrong_on_one_rank_ends_the_call_on_all_and_the_group_goes_on(rank, size, what):
    """Nobody may be left waiting in a call that one rank will not make, nor may the ranks be out of step afterwards."""
    wrong, right = WRONG_ON_ONE_RANK[what]
    x = np.ones(12 * size)
    if rank == size - 1:
        with pytest.raises((tutti.InvalidArgument, tutti.Unsupported, ZeroDivisionError)):
            wrong(x)
    else:
        try:
            right(x)  # a call that waits for nobody may be over before it hears of the refusal
        except tutti.Aborted as error:
            assert "refused its part" in str(error)
    assert tutti.all_reduce(1, timeout=20) == size


def test_mixed_frameworks_in_one_tree_are_refused(size):
    torch = pytest.importorskip("torch")
    with raises(r"torch array at \['b'\]|numpy array at \['a'\]"):
        tutti.all_reduce({"a": np.ones(2), "b": torch.ones(2)})
    assert tutti.all_reduce(1) == size


def test_a_tree_that_contains_itself_is_refused(size):
    tree = [np.ones(1)]
    tree.append(tree)
    with raises("contain itself"):
        tutti.all_reduce(tree)
    assert tutti.all_reduce(1) == size


def test_an_out_that_does_not_fit_is_refused(size):
    x = np.ones((2, 3), "float32")
    for out, text in [
        (np.ones((3, 2), "float32"), "shape"),
        (np.ones((2, 3)), "float64"),
        (np.broadcast_to(np.float32(0), (2, 3)), "read-only"),
        ([np.ones((2, 3), "float32")], "out"),
        ("text", "out|array"),
    ]:
        with raises(text):
            tutti.all_reduce(x, out=out)
    backing = np.ones(9, "float32")
    with raises("overlap"):
        tutti.all_reduce(backing[:6], out=backing[3:])
    tree = {"a": x, "b": x.copy()}
    for out in ({"a": x.copy()}, [x, x], {"a": x.copy(), "b": np.ones(6, "float32")}):
        with raises("out|shape"):
            tutti.all_reduce(tree, out=out)
    assert tutti.all_reduce(1) == size


def test_an_out_that_overlaps_itself_is_refused(size):
    def windows(shape, steps):
        return np.lib.stride_tricks.as_strided(np.zeros(64), shape, [8 * step for step in steps])

    for out in (windows((4, 3), (1, 1)), windows((3, 3), (2, 4)), windows((2, 2, 3), (5, 3, 2))):
        with raises(r"overlaps itself: with shape \[.*\] and strides \[.*several of its elements are the same memory"):
            tutti.all_reduce(np.ones(out.shape), out=out)
    with raises("the array to receive into overlaps itself"):
        tutti.recv(out=windows((4, 3), (1, 1)), src=0, timeout=20)
    for out in (windows((2, 3), (3, 2)), windows((3, 2), (1, 3)), windows((2, 2), (2, 1))[::-1]):  # gaps, crossings, backwards
        tutti.all_reduce(np.ones(out.shape), out=out)
        assert (out == size).all()


def test_arguments_that_make_no_sense(size):
    x = np.ones((3, 2))
    for call, text in [
        (lambda: tutti.all_reduce(x, op="avg"), "mean"),
        (lambda: tutti.all_reduce(x.astype(int), op="mean"), "mean does not apply to int64"),
        (lambda: tutti.all_reduce(x, op="band"), "band does not apply"),
        (lambda: tutti.all_reduce(x, op=3), "op=3"),
        (lambda: tutti.all_reduce(x, op=["sum"]), r"op=\['sum'\] is not a reduction"),
        (lambda: tutti.reduce_scatter(x, op={"sum"}), r"op=\{'sum'\} is not a reduction"),
        (lambda: tutti.reduce_scatter(x, op=lambda a, b: a), "functions in all_reduce, reduce, scan and exscan"),
        (lambda: tutti.broadcast(x, root=[0]), r"root=\[0\] is not"),
        (lambda: tutti.premul("half"), "premul: the factor is a number, not 'half'"),
        (lambda: tutti.permute(x, [(0,)]), r"pairs=\[\(0,\)\] is no list of pairs of ranks"),
        (lambda: tutti.permute(x, 5), "pairs=5 is no list of pairs"),
        (lambda: tutti.reduce(x, root=size), "root"),
        (lambda: tutti.all_gather(x, axis=2), "axis 2"),
        (lambda: tutti.all_gather(np.float32(1), axis=1), "no axis 1"),
        (lambda: tutti.reduce_scatter(np.float32(1)), "no axis 0"),
        (lambda: tutti.all_gather(x, sizes=[3] * (size + 1)), "sizes"),
        (lambda: tutti.reduce_scatter(np.ones(size + 1) if size > 1 else np.ones(2), sizes=[1] * size), "sizes|add up"),
        (lambda: tutti.permute(x, [(0, size)]), "destination"),
        (lambda: tutti.permute(x, [(0, 0), (0, 0)]), "two pairs"),
        (lambda: tutti.all_reduce(x, timeout=-1), "timeout"),
        (lambda: tutti.all_reduce(x, timeout="soon"), "timeout"),
        (lambda: tutti.send(x, dst=size), "destination"),
        (lambda: tutti.Group([0, size]), str(size)),
        (lambda: tutti.Group([0, 0]), "twice|two|once"),
        (lambda: tutti.Group(2), "2 is no list of ranks"),
        (lambda: tutti.Group(None), "None is no list of ranks"),
        (lambda: tutti.Group([0.5]), r"\[0.5\] is no list of ranks"),
        (lambda: tutti.Group([0], backend=5), "backend=5 is no name"),
    ]:
        with raises(text):
            call()
    assert tutti.all_reduce(1) == size


@pytest.mark.ranks(2)
def test_different_shapes_across_ranks_are_a_mismatch(world, rank):
    group = world.split(0)
    with pytest.raises((tutti.Mismatch, tutti.Aborted)) as error:
        tutti.all_reduce(np.ones(3 + (rank == 1)), group=group, timeout=20)
        tutti.barrier(group=group, timeout=20)
    assert "all_reduce" in str(error.value)
    with pytest.raises(type(error.value)):
        tutti.barrier(group=group)


@pytest.mark.ranks(2)
def test_a_broadcast_into_an_array_of_another_shape_names_both(world, rank):
    group = world.split(0)
    with pytest.raises(tutti.Mismatch) as error:
        tutti.broadcast(np.ones(3 if rank == 0 else (2, 5)), group=group, timeout=20)
        tutti.barrier(group=group, timeout=20)
    assert "of shape [3]" in str(error.value) and "of shape [2, 5]" in str(error.value)


@pytest.mark.ranks(2)
def test_a_missed_deadline_names_who_is_missing(world, rank):
    group = world.split(0)
    if rank == 0:
        with pytest.raises(tutti.Timeout, match="ranks? [1-9]") as error:
            tutti.barrier(group=group, timeout=0.3)
        assert isinstance(error.value, TimeoutError)
    tutti.barrier()


@pytest.mark.ranks(2)
def test_waiting_too_short_is_no_failure(world, rank, size):
    group = world.split(0)
    if rank == 0:
        work = group.barrier(async_op=True)
        with pytest.raises(tutti.Timeout, match="goes on"):
            work.wait(timeout=0.05)
    tutti.barrier()
    if rank > 0:
        work = group.barrier(async_op=True)
    work.wait()
    assert work.test()


def test_errors_are_what_python_programs_expect():
    assert issubclass(tutti.Error, RuntimeError)
    assert issubclass(tutti.InvalidArgument, ValueError)
    assert issubclass(tutti.Timeout, TimeoutError)
    error = tutti.PeerLost("rank 3 is gone", 3, "b", "killed")
    assert (error.rank, error.host, error.reason) == (3, "b", "killed")


def test_errors_go_by_the_names_that_programs_use():
    assert repr(tutti.Mismatch) == "<class 'tutti.Mismatch'>"
    for kind in (tutti.Error, tutti.InvalidArgument, tutti.Timeout, tutti.PeerLost, tutti.Aborted):
        assert getattr(tutti, kind.__name__) is kind
        assert str(pickle.loads(pickle.dumps(kind("text")))) == "text"


def test_an_error_names_the_program_s_line_not_that_of_a_framework_in_between(size):
    with raises("root") as error:
        np.apply_along_axis(tutti.broadcast, 0, np.ones((2, 2)), root=size + 7)
    line = error.traceback[0].lineno + 1
    assert f"(called at {__file__}:{line})" in str(error.value)


@pytest.mark.ranks(2)
def test_a_receive_that_fails_calls_itself_one(world, rank):
    group = world.split(0)
    if rank < 2:
        with raises(r"recv \(float32 × 4, tag 3\) from rank \d", tutti.Timeout) as error:
            tutti.recv(1 - rank, tag=3, out=np.zeros(4, "f4"), group=group, timeout=0.5)
        assert "send" not in str(error.value)
    tutti.barrier()


class FakeDevice:
    """An array on a device that Tutti cannot reach."""

    shape = (2,)

    def __dlpack__(self, **wishes):
        raise AssertionError("nobody should have asked")

    def __dlpack_device__(self):
        return (2, 0)


def test_an_array_on_a_device_that_is_not_supported(size):
    with raises("CUDA", tutti.Unsupported):
        tutti.all_reduce(FakeDevice())
    assert tutti.all_reduce(1) == size


@pytest.mark.parametrize("verb", [tutti.recv, tutti.irecv, tutti.probe, tutti.iprobe])
def test_a_source_below_the_first_rank_is_not_taken_for_any(verb, size):
    for source in (-1, np.int64(-1)):
        with raises("None takes from any"):
            verb(source)
    with raises("not in the group"):
        tutti.recv(-3, timeout=1)
    for ends in ((0, -1), (-1, 0)):
        with raises("tutti.nobody is nobody"):
            tutti.sendrecv(np.ones(2), *ends)
    assert tutti.all_reduce(1) == size


@pytest.mark.ranks(2)
def test_a_group_without_this_rank(rank, size):
    others = tutti.Group([r for r in range(size) if r != rank])
    assert others.rank == -1 and others.size == size - 1
    with raises("member"):
        tutti.all_reduce(np.ones(1), group=others)

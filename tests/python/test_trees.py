# test_trees.py: verbs on lists, tuples, dicts and dataclasses of arrays.
# SPDX-License-Identifier: Apache-2.0
import array
import collections
import dataclasses
import itertools

import numpy as np
import pytest

import references as ref
import tutti
from tutti import _native
from tutti._arrays import fuse
from tutti._arrays import tree as trees_of_arrays

Pair = collections.namedtuple("Pair", ["first", "second"])


@dataclasses.dataclass(frozen=True)
class State:
    weights: object
    step: object
    nothing: object = None


def make_tree(rank):
    """Several dtypes and containers; dicts are filled in another order on odd ranks."""
    keys = ["w", "b", "deep"] if rank % 2 == 0 else ["deep", "b", "w"]
    leaves = {
        "w": ref.make_input(rank, (4, 3), "float32"),
        "b": [ref.make_input(rank, (3,), "float32"), ref.make_input(rank, (), "int64")],
        "deep": Pair(State(ref.make_input(rank, (2, 0), "float64"), ref.make_input(rank, (5,), "int64")), (None, [])),
    }
    return {key: leaves[key] for key in keys}


def leaves_of(tree):
    return trees_of_arrays.flatten(tree, "test").leaves


def assert_same(actual, expected):
    """The same structure and arrays."""
    one, other = trees_of_arrays.flatten(actual, "test"), trees_of_arrays.flatten(expected, "test")
    assert one.text == other.text
    for x, y in zip(one.leaves, other.leaves, strict=True):
        ref.assert_equal(x, y)


def combined(trees, function):
    """One tree from the ranks' trees, leaf by leaf."""
    flats = [trees_of_arrays.flatten(tree, "test") for tree in trees]
    return flats[0].rebuild([function(list(leaves)) for leaves in zip(*(flat.leaves for flat in flats), strict=True)])


def test_the_containers_come_back_as_they_were(rank, size):
    result = tutti.all_reduce(make_tree(rank))
    assert list(result) == list(make_tree(rank))
    assert type(result["deep"]) is Pair and type(result["deep"].first) is State and result["deep"].first.nothing is None
    assert result["deep"].second == (None, [])
    assert_same(result, combined([make_tree(r) for r in range(size)], lambda xs: ref.reduced(xs, "sum")))


def test_a_list_of_one_array_gives_a_list_of_one_array(rank, size):
    (y,) = tutti.all_reduce([np.ones(3)])
    ref.assert_equal(y, np.full(3, float(size)))


@pytest.mark.parametrize("make", [collections.OrderedDict, lambda d: collections.defaultdict(list, d)])
def test_kinds_of_dicts_are_kept(size, make):
    tree = make({"b": np.ones(2), "a": np.zeros(1)})
    result = tutti.all_reduce(tree)
    assert type(result) is type(tree) and list(result) == ["b", "a"]
    assert getattr(result, "default_factory", None) is getattr(tree, "default_factory", None)


def test_numbers_in_trees(rank, size):
    total = size * (size - 1) // 2
    assert tutti.all_reduce([rank, 1, 2.5]) == [total, size, 2.5 * size]
    assert tutti.all_reduce({"loss": float(rank), "x": np.ones(1, "float32")})["loss"] == total


@pytest.mark.parametrize("verb", ["all_reduce", "reduce", "broadcast", "scan", "exscan", "permute", "sendrecv"])
@pytest.mark.parametrize("async_op", [False, True])
def test_fused_verbs(rank, size, verb, async_op):
    trees = [make_tree(r) for r in range(size)]
    zeros = combined(trees, lambda xs: np.zeros_like(xs[0]))
    before = trees[(rank - 1) % size]
    options = {"permute": {"pairs": [(r, (r + 1) % size) for r in range(size)]}}.get(verb, {})
    if verb == "sendrecv":
        options = {"dst": (rank + 1) % size, "src": (rank - 1) % size}
    expected = {
        "all_reduce": lambda: combined(trees, lambda xs: ref.reduced(xs, "sum")),
        "reduce": lambda: combined(trees, lambda xs: ref.reduced(xs, "sum")) if rank == 0 else trees[rank],
        "broadcast": lambda: trees[0],
        "scan": lambda: combined(trees[: rank + 1], lambda xs: ref.reduced(xs, "sum")),
        "exscan": lambda: combined(trees[:rank], lambda xs: ref.reduced(xs, "sum")) if rank else zeros,
        "permute": lambda: before,
        "sendrecv": lambda: before,
    }[verb]()
    result = getattr(tutti, verb)(trees[rank], async_op=async_op, **options)
    assert_same(result.wait(timeout=30) if async_op else result, expected)


@pytest.mark.parametrize("verb", ["all_gather", "gather", "reduce_scatter", "scatter", "all_to_all"])
@pytest.mark.parametrize("async_op", [False, True])
def test_verbs_that_run_once_per_array(rank, size, verb, async_op):
    def tree_of(r):
        return {"x": ref.make_input(r, (2 * size, 3), "float32"), "y": [ref.make_input(r, (size,), "int16")]}

    trees = [tree_of(r) for r in range(size)]
    functions = {
        "all_gather": lambda xs: ref.joined(xs, 0),
        "gather": lambda xs: ref.joined(xs, 0) if rank == 0 else xs[rank],
        "reduce_scatter": lambda xs: ref.part(ref.reduced(xs, "sum"), rank, size, 0),
        "scatter": lambda xs: ref.part(xs[0], rank, size, 0),
        "all_to_all": lambda xs: ref.exchanged(xs, rank, size, 0, 0),
    }
    result = getattr(tutti, verb)(trees[rank], async_op=async_op)
    assert_same(result.wait(timeout=30) if async_op else result, combined(trees, functions[verb]))


def test_uneven_arrays_in_trees(rank, size):
    result = tutti.all_gather([np.full(rank, rank), np.full((rank + 1, 2), 1.0)], uneven=True)
    ref.assert_equal(result[0], np.repeat(np.arange(size), np.arange(size)))
    assert result[1].shape == (size * (size + 1) // 2, 2)


def test_results_go_into_a_tree_of_arrays(rank, size):
    tree = {"a": ref.make_input(rank, (4,), "float32"), "b": [ref.make_input(rank, (2, 2), "float32"), np.ones(3)]}
    expected = combined(
        [
            {"a": ref.make_input(r, (4,), "float32"), "b": [ref.make_input(r, (2, 2), "float32"), np.ones(3)]}
            for r in range(size)
        ],
        lambda xs: ref.reduced(xs, "sum"),
    )
    out = {"a": np.zeros(4, "float32"), "b": [np.zeros((2, 4), "float32")[:, ::2], np.zeros(3)]}
    result = tutti.all_reduce(tree, out=out)
    assert result["a"] is out["a"] and result["b"][0] is out["b"][0]
    assert_same(out, expected)
    tutti.all_reduce(tree, out=tree)
    assert_same(tree, expected)


@pytest.mark.ranks(2)
def test_trees_as_messages(rank):
    tree = {"w": np.arange(6.0).reshape(2, 3), "n": [np.arange(4), np.arange(3.0)]}
    like = {"w": np.zeros((2, 3)), "n": [np.zeros(4, int), np.zeros(3)]}
    if rank == 0:
        tutti.send(tree, dst=1)
        tutti.isend(tree, dst=1, tag=5).wait()
    elif rank == 1:
        assert_same(tutti.recv(src=0, like=like), tree)
        assert not like["w"].any()
        tutti.irecv(out=like, src=0, tag=5).wait()
        assert_same(like, tree)


def test_many_small_arrays_are_few_messages():
    tree = [(i % 7, dtype) for i, dtype in zip(range(200), itertools.cycle(["float32", "int64"]))]
    large = (1 << 16, "float32")
    assert [len(places) for places in _native.plan_fused([*tree, large])] == [100, 100, 1]


class Unusual(dict):
    """A container that the core leaves to Python."""


def many_arrays(rank):
    """In an order of keys that is not the sorted one, of several dtypes, with gaps in memory, small and large."""
    kinds = (("w", "float32"), ("b", "float64"), ("a", "int32"))
    arrays = {f"{name}{i}": ref.make_input(rank + i, (i % 5, 3), dtype) for i in range(9) for name, dtype in kinds}
    arrays["strided"] = ref.make_input(rank, (6, 4), "float32")[::2, ::-1]
    arrays["large"] = ref.make_input(rank, (70, 100), "float64")
    return {"z": [arrays, None, ()], "k": (ref.make_input(rank, (), "float32"), [ref.make_input(rank, (7,), "int32")])}


@pytest.mark.ranks(2)
@pytest.mark.parametrize(
    "verb, options",
    [("all_reduce", {}), ("all_reduce", {"op": "max"}), ("scan", {}), ("broadcast", {"root": 1}), ("reduce", {"root": 1})],
)
def test_ranks_that_take_a_tree_apart_in_cpp_and_in_python_agree(rank, size, verb, options):
    """Messages and structure are the same, so that a rank does not notice how its peer's tree was served."""
    trees = [many_arrays(r) for r in range(size)]
    mine = Unusual(trees[rank]) if rank % 2 else trees[rank]
    result = getattr(tutti, verb)(mine, **options)
    assert type(result) is type(mine) and list(result) == list(mine)
    expected = {
        "all_reduce": lambda xs: ref.reduced(xs, options.get("op", "sum")),
        "scan": lambda xs: ref.reduced(xs[: rank + 1], "sum"),
        "broadcast": lambda xs: xs[1],
        "reduce": lambda xs: ref.reduced(xs, "sum") if rank == 1 else xs[rank],
    }[verb]
    assert_same(dict(result), combined(trees, expected))


def test_the_core_says_a_structure_in_the_same_words(rank, monkeypatch):
    said = []
    monkeypatch.setattr(trees_of_arrays, "hash_of", lambda text: said.append(text) or 4711)
    tree = many_arrays(rank)
    tree["only here"] = np.zeros((rank + 1, 2, 1))
    with pytest.raises(tutti.InvalidArgument, match="band"):
        tutti.all_reduce(tree, op="band")  # refused after the structure was found, before anything is sent
    assert said[0] == trees_of_arrays.flatten(tree, "test", fuse._describe_fused("test")).text


def test_the_results_of_one_tree_do_not_share_memory_with_the_next(rank, size):
    """The memory in which arrays are packed is used again."""
    first = tutti.all_reduce([np.full(5, 1.0), np.full(3, 2.0)])
    second = tutti.all_reduce([np.full(5, 3.0), np.full(3, 4.0)])
    assert first[0].tolist() == [size] * 5 and first[1].tolist() == [2 * size] * 3
    assert second[0].tolist() == [3 * size] * 5
    first[0][:] = 0
    assert second[1].tolist() == [4 * size] * 3


def test_arrays_of_the_buffer_protocol_and_dlpack(rank, size):
    total = size * (size - 1) // 2
    result = tutti.all_reduce([array.array("d", [rank, 1.0]), array.array("i", [rank])])
    assert result == [array.array("d", [total, size]), array.array("i", [total])]
    assert tutti.all_reduce(memoryview(array.array("f", [rank]))).tolist() == [total]
    assert tutti.all_gather(bytearray([rank])) == bytearray(range(size))
    buffer = array.array("q", [rank])
    assert tutti.all_reduce(buffer, out=buffer) is buffer and buffer[0] == total

    class Foreign:  # an array of a library that nobody knows
        def __init__(self, x):
            self.x = x

        def __dlpack__(self, **wishes):
            return self.x.__dlpack__(**wishes)

        def __dlpack_device__(self):
            return self.x.__dlpack_device__()

    result = tutti.all_reduce(Foreign(np.full(3, rank, "float32")))
    ref.assert_equal(np.from_dlpack(result), np.full(3, total, "float32"))


@pytest.mark.ranks(2)
@pytest.mark.parametrize(
    "other",
    [
        {"a": np.ones(2), "c": np.ones(2)},
        {"a": np.ones(2), "b": np.ones((1, 2))},
        {"a": np.ones(2), "b": np.ones(2, "float32")},
        [np.ones(2), np.ones(2)],
        np.ones(4),
    ],
)
@pytest.mark.parametrize("verb", ["all_reduce", "broadcast"])
def test_different_trees_are_a_mismatch(world, rank, other, verb):
    group = world.split(0)
    tree = other if rank == 1 else {"a": np.ones(2), "b": np.ones(2)}
    with pytest.raises((tutti.Mismatch, tutti.Aborted)):
        getattr(tutti, verb)(tree, group=group, timeout=20)
        tutti.barrier(group=group, timeout=20)  # a rank that was done before learns of it here


def test_the_hash_of_a_structure_is_the_same_in_every_process():
    flat = trees_of_arrays.flatten({"b": 1, "a": [None, 2.0]}, "test")
    assert flat.text == "{ ['a'] ( [0] - [1] x ) ['b'] x }"
    assert trees_of_arrays.hash_of(flat.text) == 5832333676664373001


@pytest.mark.ranks(2)
def test_trees_with_other_keys_are_named_on_both_sides(world, rank):
    group = world.split(0)
    key = "weight" if rank == 0 else "bias"
    with pytest.raises(tutti.Mismatch) as error:
        tutti.all_reduce({"layer": {key: np.ones(3, np.float32)}, "other": np.ones(3, np.float32)}, group=group)
        tutti.barrier(group=group, timeout=20)
    assert "['layer'] { ['weight'] float32(3,) }" in str(error.value)
    assert "['layer'] { ['bias'] float32(3,) }" in str(error.value)


@pytest.mark.ranks(2)
def test_of_large_trees_the_part_that_differs_is_shown(world, rank):
    group = world.split(0)
    tree = {f"layer{i:04}": np.ones(3, np.float32) for i in range(500)}
    tree["layer0400"] = np.ones((4, 2) if rank == 0 else (2, 4), np.float32)
    with pytest.raises(tutti.Mismatch) as error:
        tutti.all_reduce(tree, group=group)
        tutti.barrier(group=group, timeout=20)
    assert "['layer0400'] float32(4, 2)" in str(error.value) and "['layer0400'] float32(2, 4)" in str(error.value)
    assert "layer0001" not in str(error.value) and len(str(error.value)) < 1500


def test_permute_moves_every_array_of_a_tree(size, rank):
    tree = {"a": np.full(3, rank), "b": [np.full((2, 2), rank, np.float32), np.full(1, rank)]}
    for pairs in ([(r, (r + 1) % size) for r in range(size)], [(size - 1, 0)], []):
        moved = tutti.permute(tree, pairs)
        came = [source for source, to in pairs if to == rank]
        for leaf in (moved["a"], *moved["b"]):
            assert (leaf == (came[0] if came else 0)).all()

# test_newcomers.py: words of other libraries get a hint, and obvious ways to say a thing work.
# SPDX-License-Identifier: Apache-2.0
import re

import kinds
import numpy as np
import pytest

import tutti


@pytest.mark.parametrize(
    "name, hint",
    [
        ("allreduce", "tutti.all_reduce"),
        ("get_rank", r"tutti.rank\(\)"),
        ("get_world_size", r"tutti.size\(\)"),
        ("init_process_group", "tutti.init"),
        ("DataParallel", "tutti.torch.DataParallel"),
        ("all_redcue", "did you mean all_reduce"),
    ],
)
def test_a_name_that_is_called_otherwise_here(name, hint):
    with pytest.raises(AttributeError, match=f"tutti has no {name}; .*{hint}"):
        getattr(tutti, name)


def test_every_hint_names_something_that_exists():
    from tutti._calls import hints

    for hint in hints._NAMES.values():
        for path in re.findall(r"\btutti((?:\.\w+)+)", hint):
            found = tutti
            for word in path[1:].split("."):
                if word in ("torch", "tensorflow"):
                    pytest.importorskip(word)
                found = getattr(found, word)
    for hint in hints._GROUP_NAMES.values():
        for word in re.findall(r"\bgroup\.(\w+)", hint):
            assert hasattr(tutti.Group, word)


@pytest.mark.parametrize(
    "name, hint",
    [("Get_rank", "group.rank"), ("allreduce", "group.all_reduce"), ("Split", r"group.split\(color, key\)"), ("bcast", "group.broadcast")],
)
def test_a_name_that_is_called_otherwise_on_a_group(name, hint, world):
    with pytest.raises(AttributeError, match=f"a tutti.Group has no {name}; .*{hint}"):
        getattr(world, name)
    assert not hasattr(world, name)


@pytest.mark.parametrize("given, hint", [([0], r"tutti.Group\(\[0\]\)"), (3, "root="), ("x", "mesh.axis"), (np, "no group")])
def test_what_is_no_group_is_refused_with_what_to_pass(given, hint):
    for call in (lambda: tutti.all_reduce(1.0, group=given), lambda: tutti.barrier(group=given),
                 lambda: tutti.broadcast_object(1, group=given), lambda: tutti.average([np.ones(1)], group=given)):
        with pytest.raises(tutti.InvalidArgument, match=hint):
            call()


@pytest.mark.parametrize("op, hint", [("avg", "mean"), ("prod", "product"), (max, "max"), (np.add, "sum"), ("MPI_BAND", "band")])
def test_a_reduction_of_another_library_says_its_name_here(op, hint):
    with pytest.raises(tutti.InvalidArgument, match=f'write op="{hint}"'):
        tutti.all_reduce(1.0, op=op)


def test_a_second_init_may_repeat_but_not_change(world, rank, size):
    assert tutti.init().id == tutti.init(rank=rank, size=size).id == world.id
    for changed in ({"size": size + 1}, {"rank": rank + 1}, {"init_method": "tcp://somewhere:1"}, {"timeout": 1.5}):
        with pytest.raises(tutti.InvalidArgument, match="has joined its job already"):
            tutti.init(**changed)


def test_the_place_in_the_world_is_a_call_away(world):
    assert (tutti.rank(), tutti.size()) == (world.rank, world.size)
    assert tutti.local_rank() == tutti.context().local_rank


@pytest.mark.parametrize(
    "name, hint", [("world_size", "it is size= here"), ("master_addr", "tcp://host:port"), ("time_out", "did you mean timeout")]
)
def test_an_argument_of_init_that_is_called_otherwise_here(name, hint):
    with pytest.raises(tutti.InvalidArgument, match=hint):
        tutti.init(**{name: 2})


def test_the_context_is_read_only(rank):
    context = tutti.context()
    with pytest.raises(AttributeError, match="read-only"):
        context.rank = rank + 1
    with pytest.raises(AttributeError, match="read-only"):
        del context.rank
    with pytest.raises(TypeError):
        context["rank"] = rank + 1
    with pytest.raises(TypeError):
        context._facts["rank"] = rank + 1
    assert context.rank == context["rank"] == rank


@pytest.mark.parametrize("dtype", ["float32", np.float32, np.dtype("f4")])
@pytest.mark.parametrize("shape", [6, np.int64(6), (2, 3), [2, 3]])
def test_empty_takes_any_word_for_a_dtype_and_a_shape(shape, dtype):
    made = tutti.empty(shape, dtype=dtype)
    assert made.dtype == np.float32 and made.size == 6


def test_empty_takes_python_and_torch_dtypes():
    assert tutti.empty(2, float).dtype == np.float64
    torch = pytest.importorskip("torch")
    made = tutti.empty((2, 3), torch.bfloat16, like=torch)
    assert made.dtype is torch.bfloat16 and made.shape == (2, 3)
    assert tutti.empty(2, torch.int64).dtype == np.int64


@pytest.mark.parametrize(
    "arguments, options, hint",
    [((2, object()), {}, "no element type"), ((2, None), {}, "float32"), (("x",), {}, "sequence of numbers"), ((2,), {"like": 3j}, "")],
)
def test_empty_says_what_is_wrong(arguments, options, hint):
    if hint == "":
        assert tutti.empty(*arguments, **options).size == 2  # a number counts as NumPy's
        return
    with pytest.raises(tutti.InvalidArgument, match=hint):
        tutti.empty(*arguments, **options)


def test_an_optimiser_where_its_class_belongs():
    torch = pytest.importorskip("torch")
    layer = torch.nn.Linear(2, 2)
    with pytest.raises(tutti.InvalidArgument, match=r"torch.optim.AdamW, lr=0.5\)"):
        tutti.torch.ZeroOptimizer(layer.parameters(), torch.optim.AdamW(layer.parameters(), lr=0.5))
    with pytest.raises(tutti.InvalidArgument, match="not a class of optimisers"):
        tutti.torch.ZeroOptimizer(layer.parameters(), "adam")


@pytest.mark.parametrize("kind", kinds.ALL)
@pytest.mark.parametrize("async_op", [False, True])
def test_none_off_the_root_gives_the_kind_of_array_that_the_root_has(kind, async_op, rank, size):
    def finished(result):
        return result.wait() if async_op else result

    root = size - 1
    x = np.arange(6, dtype="f4").reshape(3, 2) + 1
    got = finished(tutti.broadcast(kinds.make(kind, x) if rank == root else None, root=root, async_op=async_op))
    assert kinds.is_kind(kind, got)
    np.testing.assert_array_equal(kinds.numbers(got), x)
    whole = np.repeat(x, size, axis=0)
    part = finished(tutti.scatter(kinds.make(kind, whole) if rank == root else None, root=root, async_op=async_op))
    assert kinds.is_kind(kind, part)
    np.testing.assert_array_equal(kinds.numbers(part), whole[rank * 3 : rank * 3 + 3])

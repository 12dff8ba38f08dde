# test_torch.py: the verbs on torch tensors in eager code.
# SPDX-License-Identifier: Apache-2.0
import pytest

torch = pytest.importorskip("torch")

import tutti  # noqa: E402

FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128]
INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint16, torch.uint32, torch.uint64]


def numbers(rank, shape=(2, 3)):
    """Small whole numbers, different on every rank; every rank can tell the others'."""
    return torch.arange(torch.Size(shape).numel(), dtype=torch.float64).reshape(shape) % 7 + rank


def of_all(size, shape=(2, 3)):
    return [numbers(r, shape) for r in range(size)]


def same(got, expected):
    assert type(got) is torch.Tensor
    assert got.shape == expected.shape
    wide = torch.complex128 if got.is_complex() else torch.float64
    assert torch.equal(got.to(wide), expected.to(wide))


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS], ids=str)
def test_every_verb_gives_what_it_says_in_every_dtype(rank, size, dtype):
    mine, all_of_them = numbers(rank), of_all(size)
    x, last = mine.to(dtype), size - 1
    total = sum(all_of_them)
    same(tutti.all_reduce(x), total)
    same(tutti.reduce(x, root=last), total if rank == last else mine)
    same(tutti.broadcast(x, root=last), all_of_them[last])
    same(tutti.all_gather(x), torch.cat(all_of_them))
    same(tutti.all_gather(x, axis=1), torch.cat(all_of_them, 1))
    same(tutti.all_gather(x, axis=None), torch.stack(all_of_them))
    same(tutti.gather(x, root=last), torch.cat(all_of_them) if rank == last else mine)
    same(tutti.scan(x), sum(all_of_them[: rank + 1]))
    same(tutti.exscan(x), sum(all_of_them[:rank], torch.zeros(2, 3)))
    same(tutti.permute(x, [(r, (r + 1) % size) for r in range(size)]), all_of_them[rank - 1])
    wide = of_all(size, (size, 2))
    same(tutti.reduce_scatter(wide[rank].to(dtype)), sum(wide)[rank : rank + 1])
    same(tutti.reduce_scatter(wide[rank].to(dtype), axis=None), sum(wide)[rank])
    same(tutti.scatter(wide[rank].to(dtype), root=last), wide[last][rank : rank + 1])
    same(tutti.all_to_all(wide[rank].to(dtype)), torch.stack([w[rank] for w in wide]))
    assert tutti.all_reduce(x).dtype is dtype


def test_reductions_other_than_the_sum(rank, size):
    everyone = torch.stack(of_all(size))
    x = numbers(rank)
    same(tutti.all_reduce(x, op="min"), everyone.amin(0))
    same(tutti.all_reduce(x, op="max"), everyone.amax(0))
    same(tutti.all_reduce(x, op="product"), everyone.prod(0))
    torch.testing.assert_close(tutti.all_reduce(x, op="mean"), everyone.mean(0))
    torch.testing.assert_close(tutti.all_reduce(x, op=tutti.premul(0.5)), everyone.sum(0) * 0.5)
    flags = torch.arange(4) % 2 == rank % 2
    assert tutti.all_reduce(flags, op="bor").tolist() == ([True] * 4 if size > 1 else flags.tolist())
    assert tutti.all_reduce(flags, op="band").tolist() == ([False] * 4 if size > 1 else flags.tolist())


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2], ids=str)
def test_float8_moves_and_adds(rank, size, dtype):
    x = torch.full((4,), 2.0).to(dtype)
    gathered = tutti.all_gather(x)
    assert gathered.dtype is dtype
    assert gathered.float().tolist() == [2.0] * (4 * size)
    assert tutti.all_reduce(x).float().tolist() == [2.0 * size] * 4
    assert [y.dtype for y in tutti.all_reduce([x, x])] == [dtype, dtype]


def test_views_of_every_kind_are_taken_as_they_lie(rank, size):
    base = numbers(rank, (4, 6))
    whole = sum(of_all(size, (4, 6)))
    same(tutti.all_reduce(base.t()), whole.t())
    same(tutti.all_reduce(base[::2, 1::2]), whole[::2, 1::2])
    same(tutti.all_reduce(base[1:, :4]), whole[1:, :4])
    same(tutti.all_reduce(base.flip(0)), whole.flip(0))
    same(tutti.all_reduce(base[0, :1].expand(5)), whole[0, :1].expand(5))
    image = numbers(rank, (2, 3, 4, 4)).to(memory_format=torch.channels_last)
    same(tutti.all_reduce(image), sum(of_all(size, (2, 3, 4, 4))))
    assert tutti.all_reduce(base.t()).is_contiguous()


def test_conjugated_and_negated_views_are_resolved(rank, size):
    z = torch.complex(numbers(rank), numbers(rank) + 1)
    conjugate = z.conj()
    negated = conjugate.imag
    assert conjugate.is_conj() and negated.is_neg()
    same(tutti.all_reduce(conjugate), sum(torch.complex(a, -a - 1) for a in of_all(size)))
    same(tutti.all_reduce(negated), sum(-a - 1 for a in of_all(size)))
    work = tutti.all_reduce(conjugate, async_op=True)
    same(work.wait(), sum(torch.complex(a, -a - 1) for a in of_all(size)))
    with pytest.raises(tutti.InvalidArgument, match="conjugated"):
        tutti.all_reduce(z, out=conjugate)


def test_empty_tensors_and_tensors_without_axes(rank, size):
    assert tutti.all_reduce(torch.tensor(2.0)).item() == 2.0 * size
    assert tutti.all_reduce(torch.tensor(2.0)).shape == ()
    assert tutti.all_gather(torch.tensor(rank), axis=None).tolist() == list(range(size))
    assert tutti.broadcast(torch.tensor(rank), root=size - 1).item() == size - 1
    assert tutti.all_reduce(torch.empty(0, 3)).shape == (0, 3)
    assert tutti.all_gather(torch.empty(2, 0)).shape == (2 * size, 0)
    assert tutti.all_gather(torch.empty(0, 3)).shape == (0, 3)
    assert tutti.reduce_scatter(torch.empty(0, 3)).shape == (0, 3)


def test_uneven_sizes_are_learned_or_given(rank, size):
    parts = [numbers(r, (r + 1, 2)) for r in range(size)]
    sizes = [r + 1 for r in range(size)]
    same(tutti.all_gather(parts[rank], uneven=True), torch.cat(parts))
    same(tutti.all_gather(parts[rank], sizes=sizes), torch.cat(parts))
    same(tutti.gather(parts[rank], uneven=True), torch.cat(parts) if rank == 0 else parts[rank])
    whole = numbers(0, (sum(sizes), 2))
    same(tutti.scatter(whole, sizes=sizes), whole.split(sizes)[rank])
    same(tutti.reduce_scatter(whole, sizes=sizes), whole.split(sizes)[rank] * size)
    mine = torch.cat([torch.full((r + 1,), float(rank)) for r in range(size)])
    expected = torch.arange(size, dtype=torch.float64).repeat_interleave(rank + 1)
    same(tutti.all_to_all(mine, split_sizes=sizes), expected)


@pytest.mark.ranks(2)
def test_others_may_pass_nothing_to_broadcast_and_scatter(rank, size):
    x = numbers(7, (size, 3)).to(torch.float32)
    got = torch.as_tensor(tutti.broadcast(x if rank == 0 else None))
    assert torch.equal(got, x)
    got = torch.as_tensor(tutti.scatter(x if rank == 0 else None))
    assert torch.equal(got, x[rank : rank + 1])


def test_out_takes_the_result(rank, size):
    x, total = numbers(rank), sum(of_all(size))
    out = torch.zeros(2, 3, dtype=torch.float64)
    assert tutti.all_reduce(x, out=out) is out
    same(out, total)
    strided = torch.zeros(4, 6, dtype=torch.float64)
    tutti.all_reduce(x, out=strided[::2, ::2])
    same(strided[::2, ::2], total)
    assert strided[1::2].eq(0).all() and strided[:, 1::2].eq(0).all()
    gathered = torch.empty(2 * size, 3, dtype=torch.float64)
    assert tutti.all_gather(x, out=gathered) is gathered
    same(gathered, torch.cat(of_all(size)))
    received = numbers(rank)
    assert tutti.broadcast(received, root=size - 1, out=received) is received
    same(received, numbers(size - 1))
    assert tutti.all_reduce(x, out=x, async_op=True).wait() is x
    same(x, total)


def test_out_that_does_not_fit_is_refused_and_the_group_stays_usable(rank, size):
    x = numbers(rank)
    with pytest.raises(tutti.InvalidArgument):
        tutti.all_reduce(x, out=torch.zeros(3, 3, dtype=torch.float64))
    with pytest.raises(tutti.InvalidArgument):
        tutti.all_reduce(x, out=torch.zeros(2, 3, dtype=torch.float32))
    with pytest.raises(tutti.InvalidArgument, match="torch.Tensor"):
        tutti.all_reduce(x, out=[0.0] * 6)
    same(tutti.all_reduce(x), sum(of_all(size)))


def test_autograd_notices_what_out_overwrites(rank, size):
    saved = torch.ones(3, dtype=torch.float64)
    parameter = torch.ones(3, dtype=torch.float64, requires_grad=True)
    loss = (parameter * saved).sum()
    tutti.all_reduce(saved, out=saved)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_results_never_share_memory_with_the_input(rank, size):
    x = numbers(rank, (size, 2))
    results = [
        tutti.all_reduce(x),
        tutti.reduce(x),
        tutti.broadcast(x),
        tutti.all_gather(x),
        tutti.gather(x),
        tutti.reduce_scatter(x),
        tutti.scatter(x),
        tutti.all_to_all(x),
        tutti.scan(x),
        tutti.permute(x, [(r, r) for r in range(size)]),
    ]
    for y in results:
        y.fill_(-1)
    same(x, numbers(rank, (size, 2)))


def test_parameters_and_subclasses_give_plain_tensors(rank, size):
    class Named(torch.Tensor):
        pass

    with torch.no_grad():
        same(tutti.all_reduce(torch.nn.Parameter(numbers(rank))), sum(of_all(size)))
    got = tutti.all_reduce(numbers(rank).as_subclass(Named))
    same(got.as_subclass(torch.Tensor), sum(of_all(size)))
    with torch.inference_mode():
        same(tutti.all_reduce(numbers(rank)), sum(of_all(size)))
        same(tutti.all_reduce(numbers(rank), async_op=True).wait(), sum(of_all(size)))


def test_trees_of_tensors_come_back_as_they_went_in(rank, size):
    tree = {"w": numbers(rank), "b": [numbers(rank, (2,)).float(), (torch.tensor(rank),)]}
    got = tutti.all_reduce(tree)
    same(got["w"], sum(of_all(size)))
    same(got["b"][0], sum(of_all(size, (2,))))
    assert got["b"][0].dtype is torch.float32
    assert got["b"][1][0].item() == size * (size - 1) // 2
    work = tutti.all_gather([numbers(rank), numbers(rank, (1,))], async_op=True)
    same(work.wait()[0], torch.cat(of_all(size)))
    outs = {"w": torch.empty(2, 3, dtype=torch.float64), "v": torch.empty(2, dtype=torch.float64)}
    tutti.all_reduce({"w": numbers(rank), "v": numbers(rank, (2,))}, out=outs)
    same(outs["w"], sum(of_all(size)))
    same(outs["v"], sum(of_all(size, (2,))))


def test_shared_memory_tensors(rank, size):
    buffer = tutti.empty((3, 5), "bfloat16", like=torch)
    assert buffer.dtype is torch.bfloat16 and buffer.shape == (3, 5)
    buffer.fill_(rank + 1)
    tutti.all_reduce(buffer, out=buffer)
    assert buffer.float().eq(size * (size + 1) / 2).all()


def test_work_overlaps_and_gives_tensors(rank, size):
    inputs = [numbers(rank, (1000 + i,)) for i in range(8)]
    works = [tutti.all_reduce(x, async_op=True) for x in inputs]
    for i, work in reversed(list(enumerate(works))):
        same(work.wait(timeout=30), sum(of_all(size, (1000 + i,))))
        assert work.test()
    tutti.all_reduce(inputs[0], async_op=True)  # dropped: runs to its end by itself
    parts = [numbers(r, (r + 1,)) for r in range(size)]
    same(tutti.all_gather(parts[rank], uneven=True, async_op=True).wait(), torch.cat(parts))
    same(tutti.broadcast(numbers(rank), async_op=True).wait(), numbers(0))


def test_an_input_changed_before_wait_is_noticed(rank, size):
    x = numbers(rank, (50,))
    work = tutti.all_reduce(x, async_op=True)
    x.add_(1)
    with pytest.raises(tutti.InvalidArgument, match="changed before wait"):
        work.wait()
    same(tutti.all_reduce(numbers(rank)), sum(of_all(size)))


def test_messages_between_ranks(rank, size):
    after, before = (rank + 1) % size, (rank - 1) % size
    same(tutti.sendrecv(numbers(rank), dst=after, src=before), numbers(before))
    buffer = torch.empty(2, 3, dtype=torch.float64)
    receiving = tutti.irecv(out=buffer, src=before, tag=3)
    tutti.isend(numbers(rank), dst=after, tag=3).wait()
    receiving.wait()
    same(buffer, numbers(before))


REFUSED = {
    "compressed": (lambda: torch.eye(2).to_sparse_csr(), tutti.Unsupported, "to_dense"),
    "meta": (lambda: torch.empty(2, device="meta"), tutti.InvalidArgument, "meta"),
    "quantised": (lambda: torch.quantize_per_tensor(torch.ones(2), 1.0, 0, torch.qint8), tutti.Unsupported, "dequan"),
    "nested": (lambda: torch.nested.nested_tensor([torch.ones(1), torch.ones(2)]), tutti.Unsupported, "unbind"),
    "zero": (lambda: torch._efficientzerotensor(3), tutti.InvalidArgument, "clone"),
    "float8 without zero": (lambda: torch.ones(2).to(torch.float8_e4m3fnuz), tutti.InvalidArgument, "float8_e4m3fnuz"),
}


@pytest.mark.parametrize("kind", REFUSED)
@pytest.mark.filterwarnings("ignore")
def test_what_is_not_one_array_on_the_cpu_is_refused_by_name(rank, size, kind):
    make, error, hint = REFUSED[kind]
    x = make()
    for async_op in (False, True):
        with pytest.raises(error, match=hint):
            tutti.all_reduce(x, async_op=async_op)
    same(tutti.all_reduce(numbers(rank)), sum(of_all(size)))


def test_inside_vmap_it_is_refused_by_name(rank, size):
    with pytest.raises(tutti.Unsupported, match="vmap"):
        torch.func.vmap(tutti.all_reduce)(numbers(rank))
    same(tutti.all_reduce(numbers(rank)), sum(of_all(size)))


@pytest.mark.ranks(2)
def test_the_others_hear_of_a_refusal_at_once_and_all_can_go_on(world, rank, size):
    group = world.split(color=0)
    for refused in (torch.eye(2).to_sparse_csr(), torch.ones(2, device="meta"), torch.ones(2, requires_grad=True)):
        op = "product" if refused.requires_grad else "sum"
        with pytest.raises(tutti.Error, match="gradient|meta|to_dense|refuse|array"):
            group.all_reduce(refused if rank == 0 else torch.ones(2), op=op, timeout=30)
    same(group.all_reduce(numbers(rank)), sum(of_all(size)))


@pytest.mark.ranks(2)
def test_different_shapes_are_a_mismatch_everywhere(world, rank):
    group = world.split(color=0)
    with pytest.raises(tutti.Mismatch):
        group.all_reduce(torch.ones(2 + rank % 2))


def test_a_default_device_or_dtype_changes_nothing(rank, size):
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        assert tutti.all_reduce(torch.ones(2, dtype=torch.float32)).dtype is torch.float32
        with torch.device("meta"):
            assert tutti.all_reduce(torch.ones(2, device="cpu")).device.type == "cpu"
    finally:
        torch.set_default_dtype(before)

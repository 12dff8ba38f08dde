# contract.py: every verb on tensors of a GPU gives, to the bit, what it gives on the same tensors in the CPU's memory.
# SPDX-License-Identifier: Apache-2.0
"""A rank of a job: run.py starts it. Says what did not hold, and ends with 1."""

from __future__ import annotations

import sys

import torch

import tutti

COUNTS = (0, 1, 7, 1000, 40001)
INTEGERS = (torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.uint16, torch.uint32, torch.uint64)
FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.float8_e4m3fn, torch.float8_e5m2)
COMPLEX = (torch.complex64, torch.complex128)
DTYPES = (torch.bool, *INTEGERS, *FLOATS, *COMPLEX)

world = tutti.init()
rank, size = world.rank, world.size
torch.cuda.set_device(rank % torch.cuda.device_count())
random = torch.Generator().manual_seed(1000 + rank)
checked, wrong = 0, []


def made(dtype: torch.dtype, *shape: int) -> torch.Tensor:
    """Elements of this rank, the same in every run."""
    if dtype is torch.bool:
        return torch.randint(0, 2, shape, generator=random).bool()
    if dtype in INTEGERS:
        return torch.randint(0, 100, shape, generator=random).to(dtype)
    values = torch.randn(*shape, generator=random) * 3
    return torch.complex(values, values.roll(1)).to(dtype) if dtype in COMPLEX else values.to(dtype)


def expect(name: str, got: torch.Tensor, expected: torch.Tensor) -> None:
    global checked
    checked += 1
    if not got.is_cuda:
        wrong.append(f"{name}: the result is on {got.device}")
        return
    got = got.cpu().contiguous()
    expected = expected.contiguous()
    same = got.shape == expected.shape and got.dtype == expected.dtype
    if same and got.numel():
        same = torch.equal(got.reshape(-1).view(torch.uint8), expected.reshape(-1).view(torch.uint8))
    if not same:
        wrong.append(f"{name}: {got.reshape(-1)[:6].tolist()} is not {expected.reshape(-1)[:6].tolist()}, {tuple(got.shape)}")


def both(name: str, verb, x: torch.Tensor) -> None:
    """The verb on the GPU and on the CPU. `verb` takes the tensor."""
    expect(name, verb(x.cuda()), verb(x))


def ops_of(dtype: torch.dtype) -> list:
    if dtype is torch.bool:
        return ["sum", "product", "min", "max", "band", "bor", "bxor"]
    if dtype in INTEGERS:
        return ["sum", "product", "min", "max", "band", "bor", "bxor"]
    if dtype in COMPLEX:
        return ["sum", "product", "mean", tutti.premul(0.25)]
    return ["sum", "product", "min", "max", "mean", tutti.premul(0.25)]


def reductions() -> None:
    for dtype in DTYPES:
        for op in ops_of(dtype):
            for count in COUNTS if op == "sum" else (1000,):
                x, name = made(dtype, count), f"{dtype} {op} {count}"
                both(f"all_reduce {name}", lambda t: tutti.all_reduce(t, op=op), x)
            x = made(dtype, 1001)
            both(f"reduce {dtype} {op}", lambda t: tutti.reduce(t, root=size - 1, op=op), x)
            if op != "mean":
                both(f"scan {dtype} {op}", lambda t: tutti.scan(t, op=op), x)
                both(f"exscan {dtype} {op}", lambda t: tutti.exscan(t, op=op), x)
            both(f"reduce_scatter {dtype} {op}", lambda t: tutti.reduce_scatter(t, op=op), made(dtype, size * 33))


def moves() -> None:
    pairs = [(i, (i + 1) % size) for i in range(size)]
    for dtype in DTYPES:
        for count in COUNTS:
            x, name = made(dtype, count), f"{dtype} {count}"
            both(f"broadcast {name}", lambda t: tutti.broadcast(t, root=size - 1), x)
            both(f"all_gather {name}", tutti.all_gather, x)
            both(f"gather {name}", lambda t: tutti.gather(t, root=0), x)
            both(f"permute {name}", lambda t: tutti.permute(t, pairs), x)
            both(f"permute some {name}", lambda t: tutti.permute(t, pairs[:1]), x)
            blocks = made(dtype, size * count)
            both(f"all_to_all {name}", tutti.all_to_all, blocks)
            scattered = tutti.scatter(blocks if rank == 0 else None, root=0)
            expect(f"scatter {name}", tutti.scatter(blocks.cuda(), root=0), scattered)


def layouts() -> None:
    for dtype in (torch.float32, torch.bfloat16, torch.int64, torch.uint8):
        wide = made(dtype, 6 * size, 10 * size)
        for name, view in (
            ("transposed", lambda t: t.t()),
            ("every second", lambda t: t[::2, 1::2]),
            ("shifted", lambda t: t.reshape(-1)[1:]),
        ):
            x, on_gpu = view(wide), view(wide.cuda())
            expect(f"all_reduce {name} {dtype}", tutti.all_reduce(on_gpu), tutti.all_reduce(x))
            expect(f"broadcast {name} {dtype}", tutti.broadcast(on_gpu), tutti.broadcast(x))
        for axis in (0, 1, None):
            both(f"all_gather axis {axis} {dtype}", lambda t: tutti.all_gather(t, axis=axis), wide)
        for axis in (0, 1):
            both(f"reduce_scatter axis {axis} {dtype}", lambda t: tutti.reduce_scatter(t, axis=axis), wide)
            both(f"all_to_all {axis} {dtype}", lambda t: tutti.all_to_all(t, split_axis=axis, concat_axis=1 - axis), wide)
            both(f"all_to_all {axis} {axis} {dtype}", lambda t: tutti.all_to_all(t, split_axis=axis, concat_axis=axis), wide)
        both(f"uneven all_gather {dtype}", lambda t: tutti.all_gather(t, uneven=True), made(dtype, rank + 1, 3))
        splits = [1 + (rank + to) % 3 for to in range(size)]
        both(f"uneven all_to_all {dtype}", lambda t: tutti.all_to_all(t, split_sizes=splits), made(dtype, sum(splits), 2))
        out = torch.zeros_like(wide).cuda().t()
        tutti.all_reduce(wide.t().cuda(), out=out)
        expect(f"all_reduce into a strided out {dtype}", out, tutti.all_reduce(wide.t()))


def in_place_and_alongside() -> None:
    x = made(torch.float32, 5000)
    y = x.cuda()
    result = tutti.all_reduce(y, op="mean", out=y)
    expect("all_reduce in place", y, tutti.all_reduce(x, op="mean"))
    if result.data_ptr() != y.data_ptr():
        wrong.append("all_reduce in place gave another tensor")
    a, b = x.clone(), x.cuda()
    pairs = [(i, (i + 1) % size) for i in range(size)]
    expect("permute in place", tutti.permute(b, pairs, out=b), tutti.permute(a, pairs))
    works = [tutti.all_reduce((x + i).cuda(), async_op=True) for i in range(8)]
    for i, work in enumerate(works):
        expect(f"asynchronous {i}", work.wait(), tutti.all_reduce(x + i))
    on_host, on_gpu = tutti.all_reduce(x, async_op=True), tutti.all_reduce(x.cuda(), async_op=True)
    expect("beside one on the host", on_gpu.wait(), on_host.wait())
    tree = {"a": x, "b": [made(torch.bfloat16, 3, 4), made(torch.float32, 2)]}
    moved = {"a": x.cuda(), "b": [t.cuda() for t in tree["b"]]}
    got, expected = tutti.all_reduce(moved), tutti.all_reduce(tree)
    expect("a tree", got["a"], expected["a"])
    for i in range(2):
        expect(f"a tree, b[{i}]", got["b"][i], expected["b"][i])


def streams() -> None:
    """A call begins behind what the current stream has, and what follows on any stream sees its result."""
    for stream in (torch.cuda.current_stream(), torch.cuda.Stream()):
        with torch.cuda.stream(stream):
            for count in (16, 1 << 20):
                x = torch.zeros(count, device="cuda")
                torch.cuda._sleep(5_000_000)
                x += rank + 1
                y = tutti.all_reduce(x)
                work = tutti.all_reduce(x, async_op=True)
                expect(f"behind {stream} {count}", y * 2, torch.full((count,), float(size * (size + 1))))
                expect(f"behind {stream} {count}, asynchronous", work.wait(), torch.full((count,), size * (size + 1) / 2))


def groups() -> None:
    part = world.split(rank % 2)
    x = made(torch.float32, 3000)
    expect("a part of the world", tutti.all_reduce(x.cuda(), group=part), tutti.all_reduce(x, group=part))
    part.destroy() if hasattr(part, "destroy") else None


def gradients() -> None:
    for verb in (tutti.all_reduce, tutti.all_gather, tutti.reduce_scatter, tutti.broadcast):
        x = made(torch.float64, 4 * size)
        a, b = x.clone().requires_grad_(), x.cuda().requires_grad_()
        weights = made(torch.float64, 4 * size * size)
        for t in (a, b):
            y = verb(t)
            (y * weights[: y.numel()].to(t.device)).sum().backward()
        expect(f"gradient of {verb.__name__}", b.grad, a.grad)
    x = made(torch.float32, 10)
    expect("sendrecv", tutti.sendrecv(x.cuda(), (rank + 1) % size, (rank - 1) % size), tutti.sendrecv(x, (rank + 1) % size, (rank - 1) % size))


def what_is_wrong() -> None:
    """Refused by name, on every rank."""
    part = world.split(0)  # the mistakes break their group
    try:
        if size == 1:
            raise tutti.Mismatch("nobody else is there: is on a GPU")
        tutti.all_reduce(torch.ones(4, device="cuda" if rank == 0 else "cpu"), group=part)
        wrong.append("a GPU and a CPU: no error")
    except tutti.Mismatch as error:
        if "is on a GPU" not in str(error):
            wrong.append(f"a GPU and a CPU: {error}")
    graph = torch.cuda.CUDAGraph()
    x = torch.ones(4, device="cuda")
    try:
        with torch.cuda.graph(graph):
            try:
                tutti.all_reduce(x)
                wrong.append("a graph was captured: no error")
            except tutti.Unsupported as error:
                if "captured" not in str(error):
                    wrong.append(f"a capture: {error}")
    except RuntimeError as error:
        wrong.append(f"the capture itself: {error}")
    expect("after the mistakes", tutti.all_reduce(x), torch.full((4,), float(size)))


def main() -> None:
    wanted = sys.argv[1:]
    for part in (reductions, moves, layouts, in_place_and_alongside, streams, groups, gradients, what_is_wrong):
        if not wanted or part.__name__ in wanted:
            before = len(wrong)
            part()
            if rank == 0:
                print(f"{part.__name__}: {checked} checks on so far, {len(wrong) - before} wrong", flush=True)
    tutti.barrier()
    for line in wrong[:10]:
        print(f"rank {rank}: {line}", flush=True)
    total = int(tutti.all_reduce(torch.tensor([len(wrong)]))[0])
    if rank == 0:
        print(f"{checked} checks on each of {size} ranks, {total} wrong", flush=True)
    sys.exit(1 if total else 0)


main()

# ivy_program.py: a program for ivy.distributed, as Ivy's page about it shows it, in one framework after the other.
# SPDX-License-Identifier: Apache-2.0
import array_api_strict as xp
import ivy
import ivy.distributed as i_dist

i_dist.init_dist(backend="nccl")


def parallel_gelu(x, pc):
    parts = ivy.split(x, num_or_size_splits=pc.world_size)
    return i_dist.all_gather(ivy.gelu(parts[pc.rank]))


for framework in ("torch", "numpy"):
    ivy.set_backend(framework)
    pc = i_dist.ParallelContext()
    assert pc is i_dist.ParallelContext() and pc["world_size"] == pc.world_size == 2 and pc.global_rank == pc.rank
    x = i_dist.broadcast(ivy.random_normal(shape=(pc.world_size, 10)))
    out1, out2 = parallel_gelu(x, pc), i_dist.pmap(ivy.gelu)(x)
    assert isinstance(out1, ivy.Array) and isinstance(out2, ivy.Array) and tuple(out1.shape) == (2, 10)
    assert ivy.all(out1 == out2) and type(out1.data) is type(x.data)

    group = i_dist.Group([0, 1])
    if group.rank == 0:
        i_dist.send(x, group=group, dst=1)
    else:
        kept = ivy.empty_like(x)
        out = i_dist.recv(x_buffer=kept, group=group, src=0)
        assert isinstance(out, ivy.Array) and ivy.all(out == x) and out is not kept
    total = i_dist.all_reduce({"a": ivy.ones((2,)), "b": [ivy.ones((1,))]})  # containers, too
    assert ivy.all(total["a"] == 2) and ivy.all(total["b"][0] == 2)

# A library that has what the array API standard asks for, and nothing else: its arrays go by DLPack.
y = i_dist.all_reduce(xp.asarray([1.0, 2.0]))
assert type(y) is type(xp.asarray([0.0])) and xp.all(y == xp.asarray([2.0, 4.0]))
gathered = i_dist.all_gather([xp.asarray([pc.rank])])[0]
assert xp.all(gathered == xp.asarray([0, 1]))
print("ivy: rank", pc.rank)

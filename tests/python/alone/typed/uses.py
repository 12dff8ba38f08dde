# uses.py: what people write; no type checker has anything to say about it. Checked, never run (test_types.py).
# SPDX-License-Identifier: Apache-2.0
import numpy as np
from numpy.typing import NDArray

import tutti

world: tutti.Group = tutti.init()
x: NDArray[np.float32] = np.ones(4, np.float32)
total: NDArray[np.float32] = tutti.all_reduce(x)
work: tutti.Work[NDArray[np.float32]] = tutti.all_reduce(x, op="max", async_op=True)
result: NDArray[np.float32] = work.wait(timeout=30)
tree: dict[str, NDArray[np.float32]] = tutti.all_reduce({"w": x}, op=tutti.premul(0.5))
half: tutti.Group = world.split(world.rank % 2)
part: NDArray[np.float32] = half.reduce_scatter(x, "sum")
first: NDArray[np.float32] = tutti.broadcast(x if world.rank == 0 else None)
stacked = tutti.all_gather(3, axis=None)
names: list[str] = tutti.all_gather_object("a")
config: dict[str, float] = tutti.broadcast_object({"lr": 0.1} if tutti.rank() == 0 else None)
place: int = tutti.context().local_rank
both: list[NDArray[np.float32]] = tutti.wait_all([work, work])
index, value = tutti.wait_any([work])
mesh = tutti.Mesh(data=-1)
grads: dict[str, NDArray[np.float32]] = tutti.average(tree, weight=3)
squared = tutti.pmap(np.square)


def double(step: int) -> float:
    return 2.0 * step


if __name__ == "__main__":
    results: list[float] = tutti.spawn(double, nprocs=2, args=(3,))


async def later() -> NDArray[np.float32]:
    with tutti.isend(x, dst=0):
        pass
    return await tutti.all_reduce(x, async_op=True)


for batch in tutti.batches((x, x), 2):
    a, b = batch
tutti.barrier()
tutti.seed(3, per_rank=True)
buffer: NDArray[np.float32] = tutti.empty((3,), "float32")
tutti.checkpoint.save("x", tree)
tutti.model_parallel.init(group_size=2)
try:
    tutti.recv(0)
except tutti.PeerLost as lost:
    rank: int = lost.rank

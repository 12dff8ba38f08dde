# hosts.py: who is where, and an all-reduce that crosses the network once per host.
# SPDX-License-Identifier: Apache-2.0
import numpy as np

import tutti

world = tutti.init()
here = tutti.context()
print(f"rank {here.rank} of {here.size} is rank {here.local_rank} of {here.local_size} on host {here.node_rank} of {here.node_count}")

inside = world.split(color=here.node_rank, key=here.rank)               # the ranks of this host
across = world.split(color=here.local_rank, key=here.rank)              # one rank of each host


def two_level_all_reduce(x):
    """Add up inside the host, each rank a part; add the parts up between hosts; put them together inside the host."""
    part = inside.reduce_scatter(x)
    part = across.all_reduce(part)
    return inside.all_gather(part)


x = np.arange(12.0) + here.rank
assert np.allclose(two_level_all_reduce(x), tutti.all_reduce(x))        # tutti.all_reduce does so by itself

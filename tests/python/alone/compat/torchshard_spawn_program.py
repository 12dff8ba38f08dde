# torchshard_spawn_program.py: a program for TorchShard that starts its own ranks, which nothing but torch.distributed knows.
# SPDX-License-Identifier: Apache-2.0
import socket

import torch
import torch.multiprocessing as mp
import torchshard as ts


def run(rank, port):
    torch.distributed.init_process_group(backend="gloo", init_method=f"tcp://127.0.0.1:{port}", world_size=2, rank=rank)
    ts.distributed.init_process_group(group_size=2)
    assert (ts.distributed.get_rank(), ts.distributed.get_world_size(), ts.distributed.get_group_size()) == (rank, 2, 2)
    tensor = torch.arange(2) + 1 + 2 * rank
    ts.distributed.reduce(tensor)
    assert tensor.tolist() == [4, 6]
    print("torchshard: rank", rank, flush=True)


if __name__ == "__main__":
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    mp.spawn(run, (port,), nprocs=2)

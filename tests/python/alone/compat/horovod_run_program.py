# horovod_run_program.py: a program that starts its own ranks by horovod.run, as Horovod's example for MNIST does.
# SPDX-License-Identifier: Apache-2.0
import horovod
import horovod.torch as hvd
import torch


def train(steps, rate=0.0):
    hvd.init()
    total = torch.zeros(1)
    for _ in range(steps):
        total += rate * hvd.allreduce(torch.tensor([hvd.rank() + 1.0]), op=hvd.Sum)
    return total.item()


if __name__ == "__main__":
    results = horovod.run(train, args=(3,), kwargs={"rate": 0.5}, np=2, use_gloo=True, verbose=2)
    assert results == [4.5, 4.5], results
    print("horovod", results, "horovod")

# test_sparse_gradients.py: embeddings with sparse gradients, in DataParallel and in average.
# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

import tutti


def net(torch, sparse):
    torch.manual_seed(2)
    return torch.nn.Sequential(torch.nn.Embedding(10, 3, sparse=sparse), torch.nn.Linear(3, 1))


def rows_of(rank):
    return [rank, rank + 1, 7]


@pytest.mark.parametrize("weighted", [False, True])
def test_data_parallel_averages_sparse_gradients(weighted, rank, size):
    torch = pytest.importorskip("torch")
    counts = [2 if weighted and r % 2 else 3 for r in range(size)]
    parts = [torch.tensor(rows_of(r)[: counts[r]]) for r in range(size)]
    single = net(torch, False)
    if weighted:
        single(torch.cat(parts)).square().mean().backward()
    else:
        sum(single(part).square().mean() for part in parts).div(size).backward()
    model = tutti.torch.DataParallel(net(torch, True))
    if weighted:
        model.weigh(counts[rank])
    model(parts[rank]).square().mean().backward()
    gradient = model.module[0].weight.grad
    assert gradient.is_sparse
    torch.testing.assert_close(gradient.to_dense(), single[0].weight.grad)
    torch.testing.assert_close(model.module[1].weight.grad, single[1].weight.grad)


def test_a_rank_that_does_not_use_the_embedding_takes_part(rank, size):
    torch = pytest.importorskip("torch")
    model = tutti.torch.DataParallel(net(torch, True))
    if rank == 0:
        model.module[1](torch.ones(2, 3)).sum().backward()
    else:
        model(torch.tensor([1])).sum().backward()
    gradient = model.module[0].weight.grad
    if size == 1:
        assert gradient is None
    else:
        expected = torch.zeros(10, 3)
        expected[1] = model.module[1].weight.detach()[0] * (size - 1) / size
        torch.testing.assert_close(gradient.to_dense(), expected)


def test_average_takes_tensorflows_rows(rank, size):
    tf = pytest.importorskip("tensorflow")
    rows = tf.IndexedSlices(tf.ones((1, 2)), tf.constant([rank % 3]), tf.constant([3, 2]))
    mean = tutti.average({"table": rows})["table"]
    expected = np.bincount([r % 3 for r in range(size)], minlength=3)[:, None] * np.ones((1, 2)) / size
    np.testing.assert_allclose(mean.numpy(), expected)

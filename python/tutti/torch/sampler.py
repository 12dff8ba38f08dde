# sampler.py: this rank's samples for torch.utils.data.DataLoader.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Iterator, Sized
from typing import Any

from torch.utils.data import Sampler

from .._training.data import shard_indices


class ShardSampler(Sampler[int]):
    """Gives a DataLoader the samples of this rank, the same that tutti.shard_indices names::

        sampler = tutti.torch.ShardSampler(data, seed=1)
        loader = DataLoader(data, batch_size=32, sampler=sampler)
        for epoch in range(10):
            sampler.set_epoch(epoch)

    The arguments are those of tutti.shard_indices."""

    def __init__(self, data: Sized, *, seed: int = 0, shuffle: bool = True, rest: str = "pad", group: Any = None):
        self.count = len(data)
        self.options = {"seed": seed, "shuffle": shuffle, "rest": rest, "group": group}
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Shuffles anew; the same number on every rank."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[int]:
        return iter(shard_indices(self.count, epoch=self.epoch, **self.options).tolist())

    def __len__(self) -> int:
        return len(shard_indices(self.count, epoch=self.epoch, **self.options))

# sync_batch_norm.py: batch normalisation over the batches of all ranks, as one process would do it over the whole batch.
# SPDX-License-Identifier: Apache-2.0
"""torch.nn.SyncBatchNorm asks torch.distributed, and normalises over this rank's batch alone where that is not used.
This one is the same layer on a group of Tutti's. DataParallel makes it of every torch.nn.SyncBatchNorm in its module."""
from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.autograd.function import once_differentiable

from .. import _native
from .._calls.dispatch import group_or_world
from .._errors import InvalidArgument
from .gpu import flat_array

_ALL_GATHER = _native.Call("all_gather", axis=None)
_SUM = _native.Call("all_reduce")


def _axes_of(x: torch.Tensor) -> list[int]:
    """All but the channels'."""
    return [axis for axis in range(x.dim()) if axis != 1]


def _by_channel(values: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    return values.view([1, -1] + [1] * (like.dim() - 2))


class _Moments:
    """Mean and variance of each channel over the batches of all ranks. Ranks tell each other the mean of theirs and the
    squares around it, so that nothing is lost where the mean is large."""

    def __init__(self, x: torch.Tensor, group: Any) -> None:
        precise = x.double() if x.dtype is torch.float64 else x.float()
        channels = x.shape[1]
        count = x.numel() // max(1, channels)
        own = precise.new_zeros(2 * channels + 1)
        own[-1] = count
        if count:
            mean = precise.mean(_axes_of(x))
            own[:channels] = mean
            own[channels:-1] = (precise - _by_channel(mean, x)).square().sum(_axes_of(x))
        every = own.new_empty(group.size, own.numel())
        group.run(_ALL_GATHER, flat_array(own), flat_array(every))
        counts = every[:, -1:].double()
        means, squares = every[:, :channels].double(), every[:, channels:-1].double()
        self.count = float(counts.sum())
        mean = (means * counts).sum(0) / max(self.count, 1.0)
        self.squares = (squares + counts * (means - mean).square()).sum(0)
        self.mean = mean.to(own.dtype)
        self.variance = (self.squares / max(self.count, 1.0)).to(own.dtype)


class _Normalise(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: Any, bias: Any, moments: _Moments, eps: float, group: Any) -> Any:
        inverse = torch.rsqrt(moments.variance + eps)
        ctx.save_for_backward(x, weight, moments.mean, inverse)
        ctx.group, ctx.count = group, moments.count
        y = (x - _by_channel(moments.mean, x)) * _by_channel(inverse, x)
        if weight is not None:
            y = y * _by_channel(weight, x)
        if bias is not None:
            y = y + _by_channel(bias, x)
        return y.to(x.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        x, weight, mean, inverse = ctx.saved_tensors
        gradient = gradient.to(mean.dtype)
        around = x - _by_channel(mean, x)
        channels = mean.numel()
        sums = torch.cat([gradient.sum(_axes_of(x)), (gradient * around).sum(_axes_of(x))])
        weight_gradient = sums[channels:] * inverse if weight is not None else None
        bias_gradient = sums[:channels].clone()
        ctx.group.run(_SUM, flat_array(sums), flat_array(sums))
        sums /= max(ctx.count, 1.0)
        shift = _by_channel(sums[:channels], x) + around * _by_channel(inverse.square() * sums[channels:], x)
        scale = inverse if weight is None else inverse * weight
        x_gradient = ((gradient - shift) * _by_channel(scale, x)).to(x.dtype)
        needs = ctx.needs_input_grad
        return (
            x_gradient if needs[0] else None,
            weight_gradient.to(weight.dtype) if needs[1] else None,
            bias_gradient if needs[2] else None,
            None, None, None,
        )  # fmt: skip


class SyncBatchNorm(nn.SyncBatchNorm):
    """torch.nn.SyncBatchNorm over the ranks of a group::

        norm = tutti.torch.SyncBatchNorm(64)

    group: whose batches are normalised together; the world unless given. The other arguments are those of
        torch.nn.BatchNorm2d.

    The ranks' batches may differ in size. Gradients flow through the statistics to all ranks: with
    tutti.torch.DataParallel they are those of the whole batch. Collective in training, forward and backward.
    """

    def __init__(self, num_features: int, *args: Any, group: Any = None, **options: Any) -> None:
        super().__init__(num_features, *args, **options)
        self.tutti_group = group

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self._check_input_dim(x)
        self._check_non_zero_input_channels(x)
        if not self.training and self.running_mean is not None:
            return super().forward(x)  # which asks no other rank then
        group = group_or_world(self.tutti_group)
        moments = _Moments(x.detach(), group)
        if moments.count < 2:
            raise InvalidArgument("SyncBatchNorm: all ranks together have less than two values per channel")
        if self.training and self.track_running_stats:
            self._track(moments)
        return _Normalise.apply(x, self.weight, self.bias, moments, self.eps, group)

    @torch.no_grad()
    def _track(self, moments: _Moments) -> None:
        self.num_batches_tracked.add_(1)
        factor = 1.0 / float(self.num_batches_tracked) if self.momentum is None else self.momentum
        unbiased = (moments.squares / (moments.count - 1)).to(moments.mean.dtype)
        for running, new in ((self.running_mean, moments.mean), (self.running_var, unbiased)):
            running.mul_(1 - factor).add_(new.to(running.dtype), alpha=factor)


def find(module: nn.Module) -> list[nn.SyncBatchNorm]:
    """All layers that would normalise over several ranks."""
    return [layer for layer in module.modules() if isinstance(layer, nn.SyncBatchNorm)]


def adopt(layers: list[nn.SyncBatchNorm], group: Any) -> None:
    """Has torch's layers use this group. They stay the same objects, with their parameters, hooks and statistics."""
    for layer in layers:
        if not isinstance(layer, SyncBatchNorm):
            layer.__class__ = SyncBatchNorm
            layer.tutti_group = None
        if layer.tutti_group is None:
            layer.tutti_group = group

# functional.py: torchshard.nn.functional.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import torch
import torch.nn.functional as F

from .... import model_parallel
from ...._errors import InvalidArgument, Unsupported
from .. import distributed
from .._marks import is_split_by_columns, mark


def check_dim(dim: int | None) -> None:
    if dim not in (None, 0, 1, -1):
        raise InvalidArgument(f"torchshard: dim={dim} is none of 0 (rows), 1 or -1 (columns) and None (not split)")


def parallel_linear(
    input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None, dim: int | None = None
) -> torch.Tensor:
    """A linear layer of which this rank has a part. By columns the output stays split; by rows a split input is used as it
    is, of a whole one this rank takes its part, and the output is whole."""
    check_dim(dim)
    if dim is None:
        return F.linear(input, weight, bias)
    if dim != 0:
        return mark(F.linear(distributed.copy(input), weight, bias), -1)
    part = input if is_split_by_columns(input) else distributed.scatter(input, dim=-1)
    whole = model_parallel.reduce(F.linear(part, weight))
    return mark(whole if bias is None else whole + bias, None)


def parallel_cross_entropy(
    input: torch.Tensor, target: torch.Tensor, weight: torch.Tensor | None = None, size_average: bool | None = None,
    ignore_index: int = -100, reduce: bool | None = None, reduction: str = "mean",
) -> torch.Tensor:
    """Cross entropy of logits that are whole, or split by columns, as a ParallelLinear(dim=-1) leaves them."""
    if not is_split_by_columns(input):
        return F.cross_entropy(input, target, weight, size_average, ignore_index, reduce, reduction)
    if weight is not None or size_average is not None or reduce is not None:
        raise Unsupported("torchshard: parallel_cross_entropy of split logits takes no weight, size_average or reduce")
    return model_parallel.cross_entropy(input, target, ignore=ignore_index, reduction=reduction)


def parallel_embedding(
    input: torch.Tensor, weight: torch.Tensor, padding_idx: int | None = None, max_norm: float | None = None,
    norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False, num_embeddings: int | None = None,
    dim: int | None = None,
) -> torch.Tensor:
    """Rows of a table of which this rank has a part; the output is whole."""
    check_dim(dim)
    if dim is None:
        return F.embedding(input, weight, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse)
    if padding_idx is not None or max_norm is not None or scale_grad_by_freq or sparse:
        raise Unsupported("torchshard: a split embedding takes no padding_idx, max_norm, scale_grad_by_freq or sparse")
    return model_parallel.embedding(input, weight, dim=dim)
